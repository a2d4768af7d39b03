from datetime import datetime, timedelta, timezone

start = datetime.strptime("2024-02-28 23:30:00", "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone.utc)
for hours in (0, 1, 24, 48):
    later = start + timedelta(hours=hours)
    print("%02d:%02d" % (later.hour, later.minute), later.isoformat(), f"{later:%A %H:%M}")
print("12:30", "23:59:59", "00:00")
