"""Words in capitals: spelled, read as a word, or only loud. Words without a vowel: spelled.

A word that is loud is read in small letters, one that is spelled becomes single letters and
one that is known stays, so there is nothing to decide a second time.
"""

from __future__ import annotations

import re

from deployments.text.rules import Rule, rule, word_set

_KNOWN = word_set(
    """
    AIDS ALGOL ANZAC ASCII ASEAN AWOL BASIC BLAS CAPTCHA CERN COBOL COVID CUDA DARPA DOS FEMA FIFA
    FOMO FORTRAN GAAP GIF HIPAA IKEA INTERPOL JPEG JSON LAN LASER LEGO LIDAR MERS MIDI NAFTA NASA
    NASCAR NASDAQ NATO NIMBY NOAA OPEC OSHA PIN POTUS RADAR RAID RAM ROM SARS SCOTUS SCUBA SIM SONAR
    SWAT TASER TED UEFA UNESCO UNICEF WAN WASP WYSIWYG YAML YOLO ZIP
    """
)
# Spelled even among loud words, although they could be read.
_SPELLED = word_set(
    """
    AA ABC AC ACLU AI AIG AKA AMA AMD AOL API ATM AWS BA BIO CEO CFO CIA CIO CNN COO CSI CTO DEA DIY
    DOA DOB DUI EPA ERA ESA ESP ETA EU EUR FAA FAQ FAQS FBI FDA FOIA GOP GPA GPU HBO HIV IBM ICU ID
    IEEE IMF IMHO IMO IOU IP IPA IPO IQ IRA IRS ISBN ISO ISP IT IV IVF LA MBA MIA MIT MOU NAACP NBA
    NBC NEA NFL NGO NIH NYU OCD OCR OEM OS PA PC PE PHD PO POV PR PTA QA RNA ROI RPI RSVP SAT SEC
    SEO SOS SUV TBA UAE UAV UBS UC UCLA UFO UI UK UN UPS URI URL US USA USB USD USDA USSR UV VIP VOA
    YMCA
    """
)
# Words that are often loud.
_LOUD = word_set(
    """
    ABOUT AFTER AGAIN ALL ALSO ALWAYS AN AND ANY ARE AREA AS ASK AT BACK BAD BE BEEN BEFORE BEST BIG
    BORN BOTH BUSY BUT BUY BY CALL CAN CANNOT CARE CITY COME COOL DAY DEAD DEAR DID DO DOES DONE
    DOOR DOWN EACH EASY EDIT ELSE END EVEN EVER EVERY EXIT FAIL FALL FAR FAST FEEL FEW FIND FINE
    FIRE FIRST FOOD FOR FREE FROM FULL FUN GET GIVE GO GOD GOING GONE GOOD GOT GREAT HAD HALF HALT
    HAPPY HARD HAS HATE HAVE HE HELLO HELP HER HERE HEY HI HIGH HIM HIS HOLD HOME HOPE HOT HOW HUGE
    IF IN INTO IS ITEM ITS JULY JUNE JUST KEEP KILL KING KNEW KNOW LAND LAST LATE LEFT LESS LET LIFE
    LIKE LINE LIST LIVE LONG LOOK LOSE LOST LOT LOUD LOVE LOW MADE MAIN MAKE MAN MANY MAY MEAN MEN
    MIND MISS MORE MOST MOVE MUCH MUST MY NAME NEAR NEED NEVER NEW NEWS NEXT NICE NIGHT NO NONE NOON
    NOT NOTE NOW OF OFF OH OLD ON ONCE ONE ONLY OPEN OR OUR OUT OVER OWN PART PAY PICK PLAN PLAY
    PLEASE PUSH PUT READ REAL RED REST RIGHT ROAD ROOM RULE RUN SAFE SAID SALE SAME SAVE SAW SAY SEE
    SEND SHE SHOP SHOW SHUT SIDE SIGN SINCE SIT SIX SLOW SO SOLD SOME SOON STAR STAY STEP STILL STOP
    SUCH SURE TAKE TALK TEAM TELL TEN TERM TEXT THAN THANK THANKS THAT THE THEIR THEM THEN THERE
    THESE THEY THING THIS TIME TIP TIPS TO TODAY TOO TOP TOWN TRUE TRY TURN TWO UNDER UNTIL UP USE
    VERY VIEW WAIT WALK WANT WAR WARN WAS WAY WE WEEK WELL WENT WERE WEST WHAT WHEN WHERE WHICH WHY
    WIDE WILL WIN WITH WORD WORK WORLD WORST WOW YEAR YES YET YOU YOUR ZERO ZONE
    """
)
_LONGEST_ACRONYM = 4
_CONTRACTION = re.compile(r"(?:I|YOU|HE|SHE|IT|WE|THEY|THAT|THERE|WHAT|WHO|LET|[A-Z]+N)'[A-Z]{1,2}")
_SHORT_WORD = re.compile("[^AEIOUY]{0,2}[AEIOU]{1,2}[^AEIOUY]{0,2}[EY]?")
_UNREADABLE = re.compile("[^AEIOUY]{4}")
# Sounds that are written without a vowel.
_SOUND = re.compile(r"h+m+|m+|s+h+|p+s+t+|b+r+|g+r+|z+|p+f+t*|t+s+k+|nth|th|st|nd|rd|x+|cwm")

_CAPITALS = r"[A-Z]{2,}(?:'[A-Z]{1,2}|'?s)?(?![A-Za-z'])"


def _row(match: re.Match[str]) -> str:
    """A row of words in capitals: loud, if one of them is, otherwise each by itself."""
    row = match[0].split(" ")
    loud = len(row) > 1 and any(map(_surely_loud, row))
    return " ".join(_spoken(word, loud) for word in row)


def _surely_loud(word: str) -> bool:
    letters = word.rstrip(",").partition("'")[0].rstrip("s")
    return letters not in _KNOWN and (letters in _LOUD or _long_word(letters))


def _long_word(letters: str) -> bool:
    readable = re.search("[AEIOUY]", letters) and not _UNREADABLE.search(letters)
    return len(letters) > _LONGEST_ACRONYM and bool(readable) and letters not in _SPELLED


def _spoken(word: str, loud: bool) -> str:
    match = re.match(r"(?P<letters>[A-Z]+)(?P<ending>'[A-Z]{1,2}|'?s)?", word)
    if match is None or len(match[0]) < 2:
        return word.lower() if loud and word == "A" else word
    letters, ending = match["letters"], match["ending"] or ""
    rest = word[match.end() :]
    if letters in _KNOWN:
        return letters + ending.lower() + rest
    if letters == "OK":
        return "okay" + ending.lower() + rest
    readable = _SHORT_WORD.fullmatch(letters) or (
        len(letters) > 3 and re.search("[AEIOUY]", letters)
    )
    if (
        letters in _LOUD
        or _long_word(letters)
        or _CONTRACTION.fullmatch(match[0])
        or (loud and readable and letters not in _SPELLED)
    ):
        return match[0].lower() + rest
    return " ".join(letters) + ("'s" if ending else "") + rest


def _without_vowel(match: re.Match[str]) -> str | None:
    return None if _SOUND.fullmatch(match[0]) else " ".join(match[0])


def _last_letters(match: re.Match[str]) -> str:
    return f"{match[1]} {' '.join(match[2])}"


# MySQL, pH, mRNA, iOS. First of all, so that their capitals are seen by the rules for initials.
MIXED: tuple[Rule, ...] = (
    rule(r"(?<![A-Za-z'])([A-Z]?[a-z]{1,20})([A-Z]{2,4})(?![A-Za-z'])", _last_letters),
    rule(r"(?<![A-Za-z'])[a-z][A-Z]{1,6}(?![A-Za-z'])", lambda match: " ".join(match[0])),
)
RULES: tuple[Rule, ...] = (
    rule(rf"(?<![A-Za-z'])(?:[AI] )?{_CAPITALS}(?:,? (?:[AI] )?{_CAPITALS})*", _row),
    rule(r"(?<![A-Za-z'])[b-df-hj-np-tv-xz]{2,}(?![A-Za-z'])", _without_vowel),
)
