"""Dates as on all pages: the month in letters, as 11/12 means two things, and hours from 0 to 23."""

DATE_FORMAT = SHORT_DATE_FORMAT = "j M Y"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "j M Y, H:i"
TIME_FORMAT = "H:i"
