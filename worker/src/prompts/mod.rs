//! Prompts of the answerer and the judges: versioned, hashed, ours.
