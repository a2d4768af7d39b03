import configparser

parser = configparser.ConfigParser()
parser.read_string("""
[server]
bind = 127.0.0.1
port = 8080
[paths]
data = /var/lib/app
""")
print(parser.get("server", "port"), dict(parser["paths"]), parser.sections())
