import xml.etree.ElementTree as ET

SVG = "http://www.w3.org/2000/svg"
root = ET.Element("{%s}svg" % SVG, width="100", height="50")
for i in range(3):
    ET.SubElement(root, "{%s}rect" % SVG, x=str(i * 30), width="20", height="20")
print(ET.tostring(root).decode())
