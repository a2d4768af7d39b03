import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
db.executemany("INSERT INTO notes (body) VALUES (?)", [("milk",), ("eggs; don't forget",)])
for row in db.execute("SELECT id, body FROM notes WHERE body LIKE '%egg%' ORDER BY id"):
    print("%d: %s" % row)
