//! The names under which published files keep question, answer and grade, where a file is of no form of its own. To know a
//! further name, add it here.

use super::{Form, Ours};

pub(super) const FORM: Form = Form {
    name: "names",
    about: "anything else whose fields have names in use",
    marks: "",
    fields: &[
        (Ours::QuestionId, "question_id qid query_id qa_id item_id instance_id example_id case_id test_id uid id key"),
        (Ours::Question, "question query question_text query_text"),
        // the last three only where they hold a whole number
        (Ours::Index, "question_index question_idx qa_index qa_idx q_idx index idx i"),
        (
            Ours::Conversation,
            "bank_id sample_id conversation_id conv_id conversation conversation_idx conversation_index conv_idx \
             conv_index sample_idx sample_index user_id user group_id haystack_id dialog_id dialogue_id",
        ),
        (Ours::Category, "category category_name question_type type cat"),
        // files with any of the others keep the expected answer in `answer`
        (
            Ours::Answer,
            "prediction predicted_answer predicted pred generated_answer generated hypothesis response model_answer \
             model_response model_output system_answer system_response agent_answer agent_response llm_answer \
             llm_response ai_answer ai_response final_answer actual_answer actual candidate completion output \
             *prediction *hypothesis *generated_answer answer",
        ),
        (
            Ours::Score,
            "score grade correct is_correct autoeval_label llm_judgments llm_judgements judgments judgements votes \
             llm_score llm_grade llm_judge_score llm_judge llm_label llm_verdict llm_correct llm_is_correct judge_score \
             judge_grade judge_label judge_verdict judge_correct judge_result judgment judgement verdict label \
             answer_correct is_answer_correct judge evaluation evaluation_result eval_result eval_score eval passed pass \
             accuracy acc rating points j_score qa_score metrics f1_score f1 \
             judgment_# judgement_# llm_judgment_# llm_judgement_# vote_# verdict_# grade_# score_# llm_score_# \
             judge_score_# judge_# correct_# is_correct_# label_# run_# trial_# \
             *judge_score *llm_score *is_correct *f1",
        ),
        (Ours::Retrieved, "retrieved retrieved_ids ranked"),
        (Ours::Metric, "metric"),
    ],
    scale: 1.0,
};
