//! When a memory system in trouble is asked again: a pure decision over one row per (system, operation).

/// Failures in a row that open a breaker.
const FAILURES: i64 = 5;
/// First and longest time that it stays open.
const FIRST_US: i64 = 1_000_000;
const LONGEST_US: i64 = 60_000_000;
/// Time that the one who tries first has to bring an answer.
const TRY_US: i64 = 30_000_000;

/// What somebody says or wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerEvent {
    /// May I?
    Ask,
    /// It failed, and not because of the request.
    Failed,
    /// It went well.
    Succeeded,
}

/// What is known of a breaker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BreakerState {
    /// Wait before the next try; 0: go on.
    pub wait_ms: u64,
    /// Failures in a row.
    pub failures: u32,
    /// Times in a row that it was opened.
    pub opened: u32,
    /// Something has failed since the last success: the next success is to be told.
    pub troubled: bool,
}

/// The row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BreakerRow {
    pub(crate) failures: i64,
    pub(crate) opened: i64,
    /// Closed to everybody until then; afterwards one may try.
    pub(crate) until_us: i64,
    /// One is trying.
    pub(crate) trying: bool,
}

impl BreakerRow {
    /// Takes an event at `now_us` of the database's clock.
    pub(crate) fn take(&mut self, now_us: i64, event: BreakerEvent) -> BreakerState {
        // a clock that was set back must not keep it closed for longer
        let left = |row: &Self| (row.until_us - now_us).clamp(0, LONGEST_US);
        let mut wait_us = 0;
        match event {
            BreakerEvent::Succeeded => *self = Self::default(),
            BreakerEvent::Failed => {
                self.failures += 1;
                // failures of calls that were under way when it opened do not open it further
                if self.trying || self.opened == 0 && self.failures >= FAILURES {
                    let length = FIRST_US.saturating_mul(1 << self.opened.clamp(0, 10)).min(LONGEST_US);
                    self.opened += 1;
                    self.until_us = now_us + length;
                    self.trying = false;
                }
                wait_us = if self.opened > 0 { left(self) } else { 0 };
            }
            BreakerEvent::Ask if self.opened > 0 => {
                wait_us = left(self);
                if wait_us == 0 {
                    // this one tries, the others wait for what becomes of it
                    self.trying = true;
                    self.until_us = now_us + TRY_US;
                }
            }
            BreakerEvent::Ask => {}
        }
        BreakerState {
            wait_ms: u64::try_from(wait_us / 1000 + i64::from(wait_us % 1000 > 0)).unwrap_or(0),
            failures: u32::try_from(self.failures).unwrap_or(u32::MAX),
            opened: u32::try_from(self.opened).unwrap_or(u32::MAX),
            troubled: self.failures > 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: i64 = 1_700_000_000_000_000;

    #[test]
    fn it_opens_after_five_failures_in_a_row_and_one_tries() {
        let mut row = BreakerRow::default();
        for _ in 0..4 {
            assert_eq!(row.take(T0, BreakerEvent::Failed).wait_ms, 0);
        }
        assert_eq!(row.take(T0, BreakerEvent::Failed).wait_ms, 1000);
        assert_eq!(row.take(T0 + 400_000, BreakerEvent::Ask).wait_ms, 600);
        assert_eq!(row.take(T0 + 500_000, BreakerEvent::Failed).opened, 1, "a late failure does not open it further");
        assert_eq!(row.take(T0 + 1_000_000, BreakerEvent::Ask).wait_ms, 0, "one tries");
        assert_eq!(row.take(T0 + 1_000_001, BreakerEvent::Ask).wait_ms, 30_000, "the others wait");
        let failed = row.take(T0 + 2_000_000, BreakerEvent::Failed);
        assert_eq!((failed.wait_ms, failed.opened), (2000, 2));
        assert_eq!(row.take(T0 + 4_000_000, BreakerEvent::Ask).wait_ms, 0);
        assert!(!row.take(T0 + 4_000_001, BreakerEvent::Succeeded).troubled);
        assert_eq!(row, BreakerRow::default());
    }

    #[test]
    fn it_never_waits_longer_than_a_minute() {
        let mut row = BreakerRow::default();
        let mut now = T0;
        for _ in 0..40 {
            now += i64::try_from(row.take(now, BreakerEvent::Ask).wait_ms).expect("fits") * 1000;
            row.take(now, BreakerEvent::Ask);
            let state = row.take(now, BreakerEvent::Failed);
            assert!(state.wait_ms <= 60_000);
        }
        assert!(row.opened > 16);
        assert!(row.take(T0 - 86_400_000_000, BreakerEvent::Ask).wait_ms <= 60_000, "the clock was set back");
    }

    #[test]
    fn a_success_between_failures_keeps_it_closed() {
        let mut row = BreakerRow::default();
        for _ in 0..100 {
            for _ in 0..4 {
                assert_eq!(row.take(T0, BreakerEvent::Failed).wait_ms, 0);
            }
            row.take(T0, BreakerEvent::Succeeded);
        }
    }
}
