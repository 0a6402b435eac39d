"""Korean writes AM or PM before the hour; Django's own format writes it after."""

DATETIME_FORMAT = "Y년 n월 j일 A g:i"
