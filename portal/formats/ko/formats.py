"""Hours from 0 to 23, as on all pages; Django's own format writes AM or PM, after the hour."""

DATE_FORMAT = SHORT_DATE_FORMAT = "Y년 n월 j일"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "Y년 n월 j일 H:i"
TIME_FORMAT = "H:i"
