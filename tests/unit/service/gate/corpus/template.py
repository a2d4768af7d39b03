from string import Template

LETTER = Template("""Dear $name,

your order #$order (total: $$${total}) ships on ${day}.
Ratio 16:9, size 3:2.
""")
print(LETTER.substitute(name="Ms. O'Neil", order=1042, total="12.00", day="2024-05-01"))
