use super::*;

const SECOND: u64 = 1_000;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_micros(0).plus_millis(millis)
}

fn queued() -> WorkItem {
    let id = WorkItemId::from_bytes([1; 16]);
    WorkItem::queued(id, EnvironmentId::from_bytes([2; 16]), SessionId::from_bytes([3; 16]), at(0))
}

fn starting() -> WorkItem {
    queued().offered(at(1), SessionTokenId::from_bytes([4; 16])).acknowledged(at(2)).expect("acknowledged")
}

fn active() -> (WorkItem, Beat) {
    starting().beaten(NO_HEARTBEAT, 300, at(3)).expect("claimed")
}

#[test]
fn an_offered_item_is_offered_again_only_after_a_while() {
    let token = SessionTokenId::from_bytes([4; 16]);
    let offered = queued().offered(at(100), token);
    assert!(queued().is_available(at(0), 5_000));
    assert!(!offered.is_available(at(5_099), 5_000));
    assert!(offered.is_available(at(5_100), 5_000));
    let again = offered.offered(at(6_000), SessionTokenId::from_bytes([5; 16]));
    assert_ne!(again.token, Some(token), "the older token counts no more");
    assert!(!starting().is_available(at(1_000_000), 0));
}

#[test]
fn an_acknowledgement_can_be_repeated_until_the_item_is_stopped() {
    let item = starting();
    assert_eq!((item.state, item.acknowledged_at), (ItemState::Starting, Some(at(2))));
    assert_eq!(item.acknowledged(at(9)), Ok(item.clone()));
    let stopped = item.asked_to_stop(true, at(10));
    assert_eq!(stopped.acknowledged(at(11)), Err(WorkRefusal::WorkItemStopped(item.id)));
}

/// WK-07, spec/anthropic.md 12.5.
#[test]
fn leases_are_told_apart_by_the_last_heartbeat() {
    let (item, first) = active();
    assert_eq!((item.state, item.started_at, first.extended), (ItemState::Active, Some(at(3)), true));
    let (item, second) = item.beaten(&first.last_heartbeat, 300, at(3)).expect("extended");
    assert_ne!(second.last_heartbeat, first.last_heartbeat, "also within a microsecond");
    for stale in [first.last_heartbeat.as_str(), NO_HEARTBEAT, "", "x"] {
        let refused = item.beaten(stale, 300, at(4)).expect_err("not the holder's");
        assert!(matches!(refused, WorkRefusal::HeartbeatMismatch { state: ItemState::Active, .. }));
    }
    assert!(queued().beaten(NO_HEARTBEAT, 300, at(4)).is_err(), "nobody holds a queued item");
    assert!(starting().beaten("x", 300, at(4)).is_err());
}

#[test]
fn leases_last_as_long_as_was_asked_for_within_bounds() {
    for (wanted, given) in [(0, 1), (1, 1), (40, 40), (300, 300), (301, 300), (u64::MAX, 300)] {
        let (item, beat) = starting().beaten(NO_HEARTBEAT, wanted, at(5)).expect("claimed");
        assert_eq!((beat.ttl_seconds, item.lease_until), (given, Some(at(5 + given * SECOND))));
    }
}

#[test]
fn a_lease_that_passes_puts_the_item_back_and_locks_its_holder_out() {
    let (item, beat) = active();
    assert_eq!(item.settled(at(3 + 300 * SECOND - 1)), item);
    let back = item.settled(at(3 + 300 * SECOND));
    assert_eq!((back.state, back.last_heartbeat, back.due_at()), (ItemState::Queued, None, None));
    assert!(back.is_available(at(3 + 300 * SECOND), 5_000));
    assert!(back.beaten(&beat.last_heartbeat, 300, at(400 * SECOND)).is_err());
    let vanished = starting().settled(at(2 + 300 * SECOND));
    assert_eq!(vanished.state, ItemState::Queued, "also before the first heartbeat");
}

#[test]
fn an_item_that_is_to_end_does_not_go_back() {
    let (item, _) = active();
    let late = at(400 * SECOND);
    assert_eq!(item.asked_to_stop(false, at(9)).settled(late).state, ItemState::Stopped);
    assert_eq!(item.session_ended(at(9)).settled(late).state, ItemState::Stopped);
}

/// spec/anthropic.md 12.6.
#[test]
fn stops_go_as_the_table_says() {
    let (active, beat) = active();
    assert_eq!(queued().asked_to_stop(false, at(9)).state, ItemState::Stopped);
    for held in [starting(), active.clone()] {
        let stopping = held.asked_to_stop(false, at(9));
        assert_eq!((stopping.state, stopping.stop_requested_at), (ItemState::Stopping, Some(at(9))));
        assert_eq!(stopping.lease_until, held.lease_until, "the lease is kept");
        assert_eq!(stopping.asked_to_stop(false, at(10)), stopping);
        let stopped = stopping.asked_to_stop(true, at(11));
        assert_eq!((stopped.state, stopped.stop_requested_at), (ItemState::Stopped, Some(at(9))));
        assert_eq!(stopped.asked_to_stop(true, at(12)), stopped);
        assert_eq!(held.asked_to_stop(true, at(9)).state, ItemState::Stopped);
    }
    let (_, heard) = active.asked_to_stop(false, at(9)).beaten("anything", 300, at(10)).expect("heard");
    assert_eq!(
        (heard.state, heard.extended, heard.last_heartbeat),
        (ItemState::Stopping, false, beat.last_heartbeat)
    );
    let (_, never) = queued().asked_to_stop(true, at(9)).beaten(NO_HEARTBEAT, 300, at(10)).expect("heard");
    assert_eq!((never.extended, never.last_heartbeat.as_str()), (false, ""));
}

/// AC-05, spec/anthropic.md 12.2.
#[test]
fn a_token_outlives_its_session_but_not_its_item() {
    let (item, _) = active();
    assert_eq!(item.session_ended(at(9)).token_until(), None);
    assert_eq!(item.asked_to_stop(false, at(9)).token_until(), None);
    assert_eq!(item.asked_to_stop(true, at(9)).token_until(), Some(at(9 + 60 * SECOND)));
    assert_eq!(queued().session_ended(at(9)).state, ItemState::Stopped);
}
