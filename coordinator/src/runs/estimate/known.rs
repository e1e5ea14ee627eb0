//! Judgements that the lineage of a fork has paid for already: the calls that its judges will make are looked for in the call
//! store by their keys (P9), and what is found is not paid again.
//!
//! All answers that the fork keeps are looked at, a part at a time: what is stored of some says nothing about the others. Of a vote
//! only the calls are looked for that rest on no reply; the others count as left, since a vote may have been cut. In a cluster
//! nothing is looked for: who carries the run out may call another server by the name of an account.

use std::collections::{BTreeMap, HashSet};

use bench_datasets::LabelFixes;
use bench_grading::judging::{MOST_CALLS, Next, Replies, keys::Case};
use bench_models::{
    call_key::call_key,
    openai::{HttpSettings, SharedHttp},
    registry,
};
use bench_plan::LookedFor;
use bench_proto::{
    call::CacheScope,
    dataset::Question,
    ids::{Sha256Hash, TaskKey},
    spec::{ModelSpec, RunSpec},
    step::{StepNo, StepText},
};
use bench_settings::ModelRole;
use bench_store::{BankRow, PaceLimits, RunRow, Store};
use bench_worker::{banks::BankData, judge::judge_request};

use crate::{
    app::{App, Deployment},
    exit::CliError,
};

/// Keys that are looked for at once.
const AT_ONCE: usize = 1_000;
/// Answers that are read at once.
const ANSWERS_AT_ONCE: usize = 256;

/// The calls of the votes of a fork whose answers are there.
pub(super) struct KnownVotes<'a> {
    spec: &'a RunSpec,
    /// Questions whose answers are there, where others are answered anew; all of them without it.
    kept: Option<&'a HashSet<TaskKey>>,
    judges: Vec<JudgeCalls>,
}

/// Calls about the answers that are there, of one judge: those that are stored, and those that are yet to be looked for.
#[derive(Default)]
struct JudgeCalls {
    /// Endpoint and account; none where they are not known here.
    whom: Option<(String, String)>,
    /// Calls that are still to be looked for.
    keys: Vec<Sha256Hash>,
    /// What is known of the others.
    known: LookedFor,
    /// A vote may have calls that rest on replies.
    goes_on: bool,
}

/// What is known of the calls of a fork's judges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KnownCalls {
    /// Of each judge.
    pub(crate) of_judges: Vec<LookedFor>,
    /// More may be stored than was looked for.
    pub(crate) at_most: bool,
}

impl<'a> KnownVotes<'a> {
    /// Of the judges of a fork; nothing yet.
    pub(super) fn of_fork(app: &App, spec: &'a RunSpec) -> Self {
        let is_local = app.deployment().is_ok_and(|deployment| deployment == Deployment::Local);
        let http = is_local.then(|| SharedHttp::new(HttpSettings::default()).ok()).flatten();
        Self::asking(spec, |judge| whom(app, judge, http.as_ref()?))
    }

    fn asking(spec: &'a RunSpec, whom: impl Fn(&ModelSpec) -> Option<(String, String)>) -> Self {
        let asked = |judge| JudgeCalls { whom: whom(judge), ..JudgeCalls::default() };
        Self { spec, kept: None, judges: spec.judges.iter().map(asked).collect() }
    }

    /// The same, of these answers alone where some are named: the others are given anew.
    pub(super) fn about(self, kept: Option<&'a HashSet<TaskKey>>) -> Self {
        Self { kept, ..self }
    }

    /// Looks for the calls about the answers of a run among the calls of its lineage, and of all runs where the fork shares calls.
    /// `fixes`: corrections of the answer key that the judges are to see.
    ///
    /// # Errors
    /// What the store meets.
    pub(super) async fn look_up(
        mut self,
        store: &dyn Store,
        source: &RunRow,
        fixes: Option<&LabelFixes>,
    ) -> Result<KnownCalls, CliError> {
        let lineage = source.lineage.as_str();
        if self.spec.limits.cache != CacheScope::Shared && store.call_count(lineage).await? == 0 {
            return Ok(KnownCalls::default());
        }
        if self.judges.iter().any(|asked| asked.whom.is_some()) {
            for row in store.banks(source.run_no, None).await? {
                self.add_bank(store, source, row, fixes).await?;
            }
            self.find(store, lineage, 1).await?;
        }
        // of votes of which nothing is stored, nothing rests on a reply
        let at_most = self.judges.iter().any(|asked| asked.whom.is_none() || (asked.goes_on && asked.known.stored > 0));
        Ok(KnownCalls { of_judges: self.judges.into_iter().map(|asked| asked.known).collect(), at_most })
    }

    /// Adds the votes on the answers of a bank.
    async fn add_bank(
        &mut self,
        store: &dyn Store,
        source: &RunRow,
        row: BankRow,
        fixes: Option<&LabelFixes>,
    ) -> Result<(), CliError> {
        let (spec, bank_no) = (self.spec, row.bank_no);
        let bank = BankData::read(store, row).await?;
        let asked: Vec<&Question> = bank.asked().collect();
        for questions in asked.chunks(ANSWERS_AT_ONCE) {
            let tasks: Vec<TaskKey> = questions.iter().map(|q| TaskKey::question(bank_no, q.index)).collect();
            let texts = store.step_texts(source.run_no, &tasks, StepNo::ANSWER).await?;
            let texts: BTreeMap<TaskKey, StepText> = texts.into_iter().collect();
            for (question, task) in questions.iter().zip(&tasks) {
                if self.kept.is_some_and(|kept| !kept.contains(task)) {
                    continue;
                }
                let Some(StepText::Answered { answer, .. }) = texts.get(task) else { continue };
                let mut gold = bank.gold(&question.question_id).cloned();
                if let (Some(fixes), Some(gold)) = (fixes, &mut gold) {
                    fixes.annotate(gold);
                }
                // what no judge can grade is called for by none
                if let Ok(case) =
                    Case::by_profile(&spec.dataset.profile, question, gold.as_ref(), answer, &bank.content)
                {
                    self.add(&case, question);
                }
            }
            self.find(store, &source.lineage, AT_ONCE).await?;
        }
        Ok(())
    }

    /// Adds the votes on an answer.
    fn add(&mut self, case: &Case<'_>, question: &Question) {
        let Next::Ask(mut calls) = case.next(&Replies::new()) else { return };
        calls.retain(|call| call.no < MOST_CALLS);
        let first = calls.len() as u64;
        let most = u64::from(case.most_calls(true)).max(first);
        let expected = u64::from(case.calls()).clamp(first, most);
        let (id, spec) = (question.question_id.as_str(), self.spec);
        for (no, (judge, asked)) in (0..).zip(spec.judges.iter().zip(&mut self.judges)) {
            let Some((endpoint, account)) = &asked.whom else { continue };
            let sample = spec.judging.samples.iter().find(|sample| sample.judge == no);
            if sample.is_some_and(|sample| !sample.holds(&question.category, id)) {
                continue;
            }
            asked.goes_on |= most > first;
            for vote in 0..spec.votes.max(1) {
                asked.known.left += expected - first;
                asked.known.most_left += most - first;
                asked.keys.extend(calls.iter().map(|call| {
                    let request = judge_request(judge, call, id, vote);
                    call_key(endpoint, account, &judge.name, &request, id, vote)
                }));
            }
        }
    }

    /// Looks for the calls of those judges that have so many of them waiting, at least.
    async fn find(&mut self, store: &dyn Store, lineage: &str, least: usize) -> Result<(), CliError> {
        for asked in self.judges.iter_mut().filter(|asked| asked.keys.len() >= least) {
            let all = std::mem::take(&mut asked.keys);
            for keys in all.chunks(AT_ONCE) {
                let mut found = HashSet::new();
                found.extend(store.find_calls(lineage, keys).await?.iter().map(|call| call.record.key));
                if self.spec.limits.cache == CacheScope::Shared {
                    let others: Vec<Sha256Hash> = keys.iter().copied().filter(|key| !found.contains(key)).collect();
                    found.extend(store.find_shared_calls(&others).await?.iter().map(|call| call.record.key));
                }
                let stored = keys.iter().filter(|key| found.contains(*key)).count() as u64;
                let left = keys.len() as u64 - stored;
                asked.known.stored += stored;
                asked.known.left += left;
                asked.known.most_left += left;
            }
        }
        Ok(())
    }
}

/// The endpoint of a judge and the name of its account, as they stand in keys; none where this process could not call it.
fn whom(app: &App, judge: &ModelSpec, http: &SharedHttp) -> Option<(String, String)> {
    let account = app.settings().account_for(ModelRole::Judge, &judge.provider);
    let account = registry::Account {
        name: account.name.clone(),
        base_url: account.base_url.clone()?,
        key: account.key.secret().cloned(),
        limits: PaceLimits::default(),
        counts_used_tokens: false,
        asks_stream_usage: true,
        parameters: account.parameters.clone(),
    };
    let model = registry::build_chat(&judge.provider, &judge.name, &account, http).ok()?;
    Some((model.endpoint().to_owned(), account.name))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bench_grading::judging::JudgeCall;
    use bench_proto::{
        call::{CallOutcome, CallRecord, Phase},
        dataset::{BankContent, Gold, GoldRecord},
        ids::RunNo,
        profile::Profile,
    };
    use bench_store::{AdoptedQuestion, Item, NewBank, conformance};

    use super::*;

    const BANKS: u32 = 3;

    /// A run in a store with one answered question in each of its banks, and a spec whose judge grades by a rubric.
    struct Answered {
        _folder: tempfile::TempDir,
        store: Arc<dyn Store>,
        run: RunNo,
        spec: RunSpec,
        gold: Gold,
        answer: &'static str,
    }

    impl Answered {
        async fn with(rubric: &str, gold: Gold, answer: &'static str) -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let store = conformance::store_in(folder.path()).await;
            let mut new = conformance::new_run("judged");
            new.spec.dataset.profile = Profile { only_rubric: Some(rubric.to_owned()), ..Profile::implied() };
            let run = store.create_run(&new).await.expect("is created");
            for bank_no in 0..BANKS {
                let question = question(bank_no);
                let question_id = question.question_id.clone();
                let record = GoldRecord { question_id, gold: gold.clone(), ..GoldRecord::default() };
                let content = BankContent { bank_id: format!("bank-{bank_no}"), ..BankContent::default() };
                let items = [
                    Item::from_bytes(serde_json::to_vec(&content).expect("is written")),
                    Item::from_bytes(serde_json::to_vec(&[question]).expect("is written")),
                    Item::from_bytes(serde_json::to_vec(&[record]).expect("is written")),
                ];
                store.put_items(&items).await.expect("are stored");
                let [content, questions, gold] = items.map(|item| item.hash);
                let bank = NewBank { content, questions, gold, ..conformance::bank(bank_no, &[(1, &[0])]) };
                let said = (StepNo::ANSWER, conformance::answered(), Some(conformance::answer_text(answer)));
                let recalled = (StepNo::RECALL, conformance::recalled(), Some(conformance::recall_text("found")));
                let task = TaskKey::question(bank_no, 0);
                let adopted = AdoptedQuestion { task, steps: vec![recalled, said] };
                store.adopt(run, &[bank], &[adopted]).await.expect("is stored");
            }
            store.finish_plan(run).await.expect("is planned");
            let mut spec = new.spec;
            let judge = ModelSpec { provider: "openai".to_owned(), name: "m".to_owned(), ..spec.answerer.clone() };
            spec.judges = vec![judge];
            Self { _folder: folder, store, run, spec, gold, answer }
        }

        /// The first calls of a vote on the answer in a bank.
        fn first_calls(&self, bank_no: u32) -> Vec<JudgeCall> {
            let (question, bank) = (question(bank_no), BankContent::default());
            let record = GoldRecord { gold: self.gold.clone(), ..GoldRecord::default() };
            let profile = &self.spec.dataset.profile;
            let case = Case::by_profile(profile, &question, Some(&record), self.answer, &bank).expect("has a rubric");
            match case.next(&Replies::new()) {
                Next::Ask(calls) => calls,
                Next::Done(grade) => panic!("{grade:?}"),
            }
        }

        /// Pays for the first calls about a bank.
        async fn pay_for(&self, bank_no: u32) {
            let (id, judge) = (question(bank_no).question_id, &self.spec.judges[0]);
            for call in self.first_calls(bank_no) {
                let request = judge_request(judge, &call, &id, 0);
                let key = call_key("http://judge/v1", "openai", &judge.name, &request, &id, 0);
                let paid = conformance::call("judge", CallOutcome::Accepted, 1);
                let record = CallRecord { key, phase: Phase::Judge, ..paid };
                let task = TaskKey::judge(bank_no, 0, 0, 0);
                self.store.put_calls(self.run, task, &[record]).await.expect("is stored");
            }
        }

        async fn known(&self, is_local: bool) -> KnownCalls {
            self.known_of(is_local, None).await
        }

        async fn known_of(&self, is_local: bool, kept: Option<&HashSet<TaskKey>>) -> KnownCalls {
            let source = self.store.run(self.run).await.expect("is there");
            let whom = |_: &ModelSpec| is_local.then(|| ("http://judge/v1".to_owned(), "openai".to_owned()));
            let votes = KnownVotes::asking(&self.spec, whom).about(kept);
            votes.look_up(self.store.as_ref(), &source, None).await.expect("is looked up")
        }
    }

    fn question(bank_no: u32) -> Question {
        let question_id = format!("bank-{bank_no}:0");
        let text = format!("What happened in {bank_no}?");
        Question { question_id, text, category: "single-hop".to_owned(), ask_after: 1, ..Question::default() }
    }

    fn looked_for(stored: u64, left: u64, most_left: u64) -> Vec<LookedFor> {
        vec![LookedFor { stored, left, most_left }]
    }

    #[tokio::test]
    async fn calls_are_looked_for_about_all_answers_and_only_what_is_found_is_stored() {
        let run = Answered::with("judge-single", Gold::Text("a party".to_owned()), "a party").await;
        assert_eq!(run.known(true).await, KnownCalls::default(), "nothing was paid for");
        run.pay_for(0).await;
        assert_eq!(run.known(true).await, KnownCalls { of_judges: looked_for(1, 2, 2), at_most: false });
        run.pay_for(1).await;
        run.pay_for(2).await;
        assert_eq!(run.known(true).await, KnownCalls { of_judges: looked_for(3, 0, 0), at_most: false });
        // the others are answered anew
        let kept = HashSet::from([TaskKey::question(0, 0), TaskKey::question(2, 0)]);
        let of_kept = KnownCalls { of_judges: looked_for(2, 0, 0), at_most: false };
        assert_eq!(run.known_of(true, Some(&kept)).await, of_kept);
        // workers may call another server
        assert_eq!(run.known(false).await, KnownCalls { of_judges: looked_for(0, 0, 0), at_most: true });
    }

    #[tokio::test]
    async fn of_a_vote_that_may_have_been_cut_the_calls_that_rest_on_replies_are_left() {
        let items = (0..4).map(|item| format!("event {item}")).collect();
        let run = Answered::with("judge-ordering", Gold::Rubric(items), "one\ntwo\nthree").await;
        run.pay_for(0).await;
        assert_eq!(run.first_calls(0).len(), 1);
        // a call for each of three lines: one of nine is stored
        assert_eq!(run.known(true).await, KnownCalls { of_judges: looked_for(1, 8, 8), at_most: true });
    }
}
