import io
import zipfile

buffer = io.BytesIO()
with zipfile.ZipFile(buffer, "w") as archive:
    archive.writestr("docs/readme.txt", "hello\n")
    archive.writestr("src/main.py", "print('hi')\n")
print(zipfile.ZipFile(buffer).namelist(), "report.csv", "index.html")
