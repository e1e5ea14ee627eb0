//! Everything that stands before a send: the route, pace, a place, money, and last of all the stop flag (P10, P23, P24).

use std::time::{Duration, Instant};

use bench_proto::{money::PicoUsd, price::ModelPrice, step::WaitFor};

use super::{Call, CallStop, Caller, CallerParts};
use crate::{
    budget::{Refusal, Reservation},
    gate::{Entry, Gate},
    limiter::Permit,
    pace::Paced,
    routes::Sent,
    stop::StopCause,
    tokens,
};

/// A place is kept for a call that waits for money no longer than this.
const HOLD_PLACE: Duration = Duration::from_millis(100);

/// A call that may be sent now.
pub(super) struct Admitted<'a> {
    pub(super) reservation: Option<Reservation>,
    pub(super) permit: Permit<'a>,
    pub(super) sent: Option<Sent<'a>>,
}

impl<'a> Call<'a> {
    /// Everything that stands before a send: money, pace, place, and last of all the stop flag (P23).
    pub(super) async fn admit(&mut self) -> Result<Admitted<'a>, CallStop> {
        loop {
            if let Some(admitted) = self.try_admit().await? {
                return Ok(admitted);
            }
        }
    }

    /// `None` when the route was closed, or came into doubt for what may have been billed, while the call waited for the rest.
    pub(super) async fn try_admit(&mut self) -> Result<Option<Admitted<'a>>, CallStop> {
        let CallerParts { stop, pace, gate, settings, account, route, .. } = &self.caller.parts;
        if let Some(cause) = stop.cause() {
            return Err(CallStop::Stopped(cause));
        }
        self.find_way().await?;
        if let Some(pace) = pace {
            let tokens = if pace.counts_tokens() { self.prompt_tokens() + self.request.output_limit() } else { 0 };
            match stop
                .unless_stopped(pace.acquire((self.context.run, self.context.phase), tokens, settings.patience))
                .await
            {
                Ok(Paced::Go { .. }) => self.slot_tokens = tokens,
                Ok(Paced::Later { wait }) => return Err(self.park(wait, "waiting for the run's pace".to_owned())),
                Err(cause) => return Err(CallStop::Stopped(cause)),
            }
        }
        let permit = self.enter(gate, account).await?;
        // last of all, so that a kill loses no money of calls that only waited; who waits long for money leaves the place to others
        let (waiting, mut permit) = (Instant::now(), Some(permit));
        let reserved = {
            let mut reserving = std::pin::pin!(self.reserve());
            tokio::select! {
                biased;
                reserved = &mut reserving => reserved,
                () = tokio::time::sleep(HOLD_PLACE) => {
                    permit = None;
                    reserving.await
                }
            }
        };
        let mut reservation = reserved?;
        self.noted(waiting, WaitFor::Budget);
        let permit = match permit {
            Some(permit) => permit,
            None => self.enter(gate, account).await?,
        };
        if let Some(cause) = stop.cause() {
            return Err(CallStop::Stopped(cause));
        }
        let sent = match route {
            Some(route) if self.maybe_billed && route.is_suspect() => return Ok(None),
            Some(route) => match route.send() {
                Some(sent) => Some(sent),
                None => return Ok(None),
            },
            None => None,
        };
        if let Some(reservation) = &mut reservation {
            reservation.sent();
        }
        Ok(Some(Admitted { reservation, permit, sent }))
    }

    pub(super) async fn enter(&mut self, gate: &'a Gate, account: &str) -> Result<Permit<'a>, CallStop> {
        let CallerParts { stop, settings, .. } = &self.caller.parts;
        match stop.unless_stopped(gate.enter(settings.patience)).await {
            Ok(Entry::Go(permit)) => Ok(permit),
            Ok(Entry::Later { wait }) => Err(self.park(wait, format!("account {account} asked to wait"))),
            Err(cause) => Err(CallStop::Stopped(cause)),
        }
    }

    /// Reserves the worst case of an attempt (P10). Far from the cap a bound that costs nothing to compute will do; close
    /// to it the prompt is counted.
    pub(super) async fn reserve(&mut self) -> Result<Option<Reservation>, CallStop> {
        let CallerParts { stop, budget, .. } = &self.caller.parts;
        let Some(bound) = self.to_reserve(tokens::prompt_bound(self.request)) else { return Ok(None) };
        let phase = self.context.phase;
        match stop.unless_stopped(budget.reserve_generously(phase, bound)).await {
            Ok(Some(reservation)) => return Ok(Some(reservation)),
            Ok(None) => {}
            Err(cause) => return Err(CallStop::Stopped(cause)),
        }
        let prompt_tokens = self.prompt_tokens();
        let Some(worst) = self.to_reserve(prompt_tokens) else { return Ok(None) };
        match stop.unless_stopped(budget.reserve(phase, worst)).await {
            Ok(Ok(reservation)) => Ok(Some(reservation)),
            Ok(Err(Refusal::OverCap(over_cap))) => Err(CallStop::Budget(over_cap)),
            Ok(Err(Refusal::Stopped(why))) => Err(CallStop::Stopped(StopCause::Asked(why))),
            Err(cause) => Err(CallStop::Stopped(cause)),
        }
    }

    /// What the run's cap counts of an attempt with so many prompt tokens: usage, or dollars; `None` where nothing is to be reserved.
    fn to_reserve(&self, prompt_tokens: u64) -> Option<PicoUsd> {
        let CallerParts { price, settings, .. } = &self.caller.parts;
        match settings.counts {
            Some(unit) => {
                let most = tokens::with_margin(prompt_tokens).saturating_add(self.request.output_limit());
                Some(PicoUsd(unit.of_attempt(most)))
            }
            None => price.as_ref().map(|price| self.worst_case(price, prompt_tokens)),
        }
    }

    /// Counted prompt × 1.05 and the largest completion.
    pub(super) fn worst_case(&self, price: &ModelPrice, prompt_tokens: u64) -> PicoUsd {
        let prompt = tokens::with_margin(prompt_tokens);
        price.worst(prompt, self.request.output_limit(), self.request.service_tier(), self.request.writes_cache())
    }

    pub(super) fn prompt_tokens(&mut self) -> u64 {
        let Caller { parts, encoding, .. } = self.caller;
        *self.prompt_tokens.get_or_insert_with(|| parts.model.prompt_tokens(*encoding, self.request))
    }
}
