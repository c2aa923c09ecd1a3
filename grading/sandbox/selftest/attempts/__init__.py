"""What a student's code might try, sent into the box as text: functions that yield attempts as (what, how)."""
