"""Korean names the half of the day before the hour; Django's own format has it behind."""

DATETIME_FORMAT = "Y년 n월 j일 A g:i"
