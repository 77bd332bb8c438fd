"""Draws notice.png. It needs Pillow and DejaVu: apt-get install python3-pil fonts-dejavu-core"""

from PIL import Image, ImageDraw, ImageFont

LINES = ["Ferry to Harlow Island", "Monday to Friday at 7:45 and 16:30", "Dogs travel free of charge"]

picture = Image.new("L", (900, 260), 255)
draw = ImageDraw.Draw(picture)
font = ImageFont.truetype("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", 40)
for number, line in enumerate(LINES):
    draw.text((40, 30 + 70 * number), line, fill=0, font=font)
picture.save("notice.png", optimize=True)
