"""The colours of pages and notebook fragments, light and dark: CSS variables."""

LIGHT = """
  --ground: #f5f6f7; --paper: #ffffff; --ink: #1c2126; --muted: #5a636d; --line: #dce0e5;
  --track: #eceff2; --flow: #b9cdd6; --accent: #1b6a86; --soft: #e6f0f4; --others: #a9b1ba;
  --good: #2b6e4f; --warm: #d99a1c; --bad: #a63d17; --bad-soft: #fbeee8;
  --c0: #77aadd; --c1: #ee8866; --c2: #eedd88; --c3: #ffaabb; --c4: #99ddff;
  --c5: #44bb99; --c6: #bbcc33; --c7: #c9b458; --c8: #dddddd;
"""
DARK = """
  --ground: #13161a; --paper: #1b1f24; --ink: #e4e7ea; --muted: #98a2ad; --line: #2f363d;
  --track: #2a3037; --flow: #3d525d; --accent: #63b4d1; --soft: #20303a; --others: #67717c;
  --good: #7cc7a0; --warm: #d9a441; --bad: #f0715c; --bad-soft: #33221b;
"""
