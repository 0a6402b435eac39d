"""`make up`: everything Berth needs for a trial on one machine, started in order and stopped in order."""
