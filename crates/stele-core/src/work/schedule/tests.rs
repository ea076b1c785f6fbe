use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).expect("a time")
}

/// The occasions from `from` to `to`, in UTC to the minute.
fn occasions(cron: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
    let schedule = Schedule::parse(cron, zone).expect("a schedule");
    let mut next = schedule.next_occasion(at(from));
    let mut all = Vec::new();
    while let Some(occasion) = next.filter(|next| *next < at(to)) {
        all.push(occasion.to_string()[..16].to_owned());
        next = schedule.next_occasion(occasion);
    }
    all
}

/// SW-06, the clock put forward: 02:00 in Berlin is followed by 03:00 on 29 March 2026.
#[test]
fn sw_06_no_local_day_loses_its_run_when_the_clock_is_put_forward() {
    let over = |cron| occasions(cron, "Europe/Berlin", "2026-03-27T23:00:00Z", "2026-03-30T22:00:00Z");
    // 02:30 on the 29th does not exist: the run is at 03:30 local time.
    assert_eq!(over("30 2 * * *"), ["2026-03-28T01:30", "2026-03-29T01:30", "2026-03-30T00:30"]);
    assert_eq!(over("30 1 * * *"), ["2026-03-28T00:30", "2026-03-29T00:30", "2026-03-29T23:30"]);
}

/// SW-06, the clock put back: 03:00 in Berlin is 02:00 again on 25 October 2026.
#[test]
fn sw_06_no_local_day_has_two_runs_when_the_clock_is_put_back() {
    let over = |cron| occasions(cron, "Europe/Berlin", "2026-10-23T22:00:00Z", "2026-10-26T23:00:00Z");
    assert_eq!(over("30 2 * * *"), ["2026-10-24T00:30", "2026-10-25T00:30", "2026-10-26T01:30"]);
    assert_eq!(over("30 1 * * *"), ["2026-10-23T23:30", "2026-10-24T23:30", "2026-10-26T00:30"]);
}

#[test]
fn a_schedule_for_every_hour_goes_by_the_time_that_passes() {
    let forward = occasions("0 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T03:30:00Z");
    assert_eq!(forward, ["2026-03-29T01:00", "2026-03-29T02:00", "2026-03-29T03:00"]);
    let back = occasions("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:59:00Z", "2026-10-25T02:10:00Z");
    assert_eq!(
        back,
        ["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30", "2026-10-25T02:00"]
    );
}

#[test]
fn an_hour_that_is_put_off_into_one_that_is_named_too_is_one_occasion() {
    let over = occasions("*/30 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z");
    assert_eq!(over, ["2026-03-29T01:00", "2026-03-29T01:30"]);
}

/// In Cairo the clock is put forward at midnight; in Apia a whole day was left out.
#[test]
fn changes_at_midnight_and_days_left_out() {
    let cairo = occasions("15 0 * * *", "Africa/Cairo", "2026-04-22T12:00:00Z", "2026-04-25T12:00:00Z");
    assert_eq!(cairo, ["2026-04-22T22:15", "2026-04-23T22:15", "2026-04-24T21:15"]);
    let apia = occasions("0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", "2012-01-01T00:00:00Z");
    assert_eq!(apia, ["2011-12-29T22:00", "2011-12-30T22:00", "2011-12-31T22:00"]);
}

#[test]
fn days_of_the_month_and_of_the_week() {
    let utc = |cron, to| occasions(cron, "UTC", "2026-01-01T00:00:00Z", to);
    assert_eq!(utc("0 9 13 * fri", "2026-01-17T00:00:00Z").len(), 4, "either of two restricted ones");
    assert_eq!(utc("0 9 * * 1-5", "2026-01-08T00:00:00Z").len(), 5);
    assert_eq!(utc("0 0 * * 7", "2026-01-12T00:00:00Z"), ["2026-01-04T00:00", "2026-01-11T00:00"]);
    assert_eq!(utc("0 0 29 feb *", "2033-01-01T00:00:00Z"), ["2028-02-29T00:00", "2032-02-29T00:00"]);
    assert_eq!(utc("5/20,0 3 1 * *", "2026-01-02T00:00:00Z").len(), 4);
}

#[test]
fn what_is_no_schedule() {
    for cron in [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "-1 * * * *",
        "5-1 * * * *",
        "*/0 * * * *",
        "a * * * *",
        "1, * * * *",
        "@daily",
        "* * * * mon-",
        "+1 * * * *",
        "1//2 * * * *",
    ] {
        assert_eq!(Schedule::parse(cron, "UTC"), Err(ScheduleError::Cron), "{cron}");
    }
    assert_eq!(Schedule::parse("0 0 30 2 *", "UTC"), Err(ScheduleError::Never));
    for zone in ["", "Mars/Olympus", "+02:00", "Europe/Berlin/"] {
        assert_eq!(Schedule::parse("* * * * *", zone), Err(ScheduleError::Zone), "{zone}");
    }
    assert!(Schedule::parse("0 0 1 JAN Sun", "europe/berlin").is_ok());
}
