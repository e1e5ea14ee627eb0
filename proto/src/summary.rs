//! The summary of a run: `report.json`, schema version 1.
