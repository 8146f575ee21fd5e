"""What is written in digits, and how it is said."""

import pytest

from deployments.text.english import normalize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("I have 3 cats.", "I have three cats."),
        ("1,234,567", "one million two hundred thirty four thousand five hundred sixty seven"),
        ("room 101", "room one hundred one"),
        ("7,900,000,000 people", "seven billion nine hundred million people"),
        ("1000", "one thousand"),
        ("007", "zero zero seven"),
        ("It's -5 now", "It's minus five now"),
        ("It's \u20135 now", "It's minus five now"),
        ("5 \u2013 10 now", "five to ten now"),
        ("a 5 and a -3.5", "a five and a minus three point five"),
        ("+5 degrees", "plus five degrees"),
        ("12345", "twelve thousand three hundred forty five"),
    ],
)
def test_a_number_is_named_the_american_way(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("3.14159", "three point one four one five nine"),
        ("0.5", "zero point five"),
        (".5", "point five"),
        ("100,000.50", "one hundred thousand point five zero"),
        ("Python 3.11", "Python three point one one"),
        ("1.0", "one point zero"),
    ],
)
def test_a_decimal_is_read_digit_by_digit(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("the 3rd man", "the third man"),
        ("1st, 2nd, 3rd, 4th", "first, second, third, fourth"),
        ("the 21st century", "the twenty first century"),
        ("the 1,000th visitor", "the one thousandth visitor"),
        ("2ND place", "second place"),
        ("two 3rds", "two thirds"),
    ],
)
def test_an_ordinal(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("I was born in 2021.", "I was born in twenty twenty one."),
        ("in 1905", "in nineteen oh five"),
        ("in 2000", "in two thousand"),
        ("in 2007", "in two thousand seven"),
        ("the year 1776", "the year seventeen seventy six"),
        ("in 1066", "in ten sixty six"),
        ("June 2021", "June twenty twenty one"),
        ("1990-1995", "nineteen ninety to nineteen ninety five"),
        ("in 2021-22", "in twenty twenty one to twenty two"),
        ("(1914\u20131918)", "nineteen fourteen to nineteen eighteen"),
        ("the 1990s", "the nineteen nineties"),
        ("the '60s", "the sixties"),
        ("the 80's", "the eighties"),
        ("the 1800s", "the eighteen hundreds"),
        ("44 BC", "forty four B C"),
        ("AD 79", "A D seventy nine"),
        ("2,021 people", "two thousand twenty one people"),
        ("2019-present", "twenty nineteen to present"),
        ("1990s\u20132000s", "nineteen nineties to two thousands"),
    ],
)
def test_a_year_is_read_in_two_halves(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("7:45 p.m.", "seven forty five p m."),
        ("7:45 p.m. today", "seven forty five p m today"),
        ("at 8:00", "at eight o'clock"),
        ("12:05", "twelve oh five"),
        ("8:05 a.m. and 9 a.m. sharp", "eight oh five a m and nine a m sharp"),
        ("5:00 PM", "five p m"),
        ("2pm", "two p m"),
        ("10:30am", "ten thirty a m"),
        ("14:00", "fourteen hundred"),
        ("00:30", "zero thirty"),
        ("00:00", "midnight"),
        ("2:30:15", "two thirty and fifteen seconds"),
        ("9 a.m.-5 p.m. daily", "nine a m to five p m daily"),
        ("from 9:00-17:00", "from nine o'clock to seventeen hundred"),
        ("8-9:30 pm", "eight to nine thirty p m"),
        ("noon-1pm", "noon to one p m"),
        ("9am-noon", "nine a m to noon"),
        ("12 a.m. Eastern", "twelve a m Eastern"),
        ("at 5 p.m. Monday", "at five p m Monday"),
        ("at 6 p.m. He left.", "at six p m. He left."),
    ],
)
def test_a_time_of_day(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("March 3rd, 2021", "March third, twenty twenty one"),
        ("3/14/2015", "March fourteenth, twenty fifteen"),
        ("2015-03-14", "March fourteenth, twenty fifteen"),
        ("14 March 2015", "the fourteenth of March, twenty fifteen"),
        ("14.03.2015", "March fourteenth, twenty fifteen"),
        ("14/3/2015", "March fourteenth, twenty fifteen"),
        ("12/25/99", "December twenty fifth, nineteen ninety nine"),
        ("the 4th of July", "the fourth of July"),
        ("July 4", "July fourth"),
        ("Jan. 5", "January fifth"),
        ("Sept. 11, 2001", "September eleventh, two thousand one"),
        ("May 5-7, 2020", "May fifth to seventh, twenty twenty"),
        ("on Mon. 5 May", "on Monday the fifth of May"),
        ("Mon-Fri", "Monday to Friday"),
        ("Jan-Mar", "January to March"),
        ("3-May-2021", "the third of May, twenty twenty one"),
        ("June 1-July 4", "June first to July fourth"),
        ("until 12/25", "until December twenty fifth"),
        ("the 3rd of May 1999", "the third of May, nineteen ninety nine"),
        ("25 Dec 2020", "the twenty fifth of December, twenty twenty"),
        ("on 5/6 we left", "on May sixth we left"),
        ("2015-03-14T10:30", "March fourteenth, twenty fifteen, ten thirty"),
        ("February 30 and 2/30/2020", "February thirtieth and February thirtieth, twenty twenty"),
    ],
)
def test_a_date(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("$4.50", "four dollars and fifty cents"),
        ("$4", "four dollars"),
        ("$1", "one dollar"),
        ("$1.01", "one dollar and one cent"),
        ("$0.99", "ninety nine cents"),
        ("$0.05", "five cents"),
        ("$1,234.56", "one thousand two hundred thirty four dollars and fifty six cents"),
        ("£3", "three pounds"),
        ("€2.99", "two euros and ninety nine cents"),
        ("¥500", "five hundred yen"),
        ("50¢", "fifty cents"),
        ("$1.5 million", "one point five million dollars"),
        ("£5m", "five million pounds"),
        ("€1.5bn", "one point five billion euros"),
        ("$100K", "one hundred thousand dollars"),
        ("$1M-$2M", "one million dollars to two million dollars"),
        ("~$3.1 trillion", "about three point one trillion dollars"),
        ("$5-10", "five to ten dollars"),
        ("$5-$10", "five dollars to ten dollars"),
        ("$5-10 million", "five to ten million dollars"),
        ("$20 million-$30 million", "twenty million dollars to thirty million dollars"),
        ("-$5", "minus five dollars"),
        ("$-5", "minus five dollars"),
        ("US$5 and C$20", "five U S dollars and twenty Canadian dollars"),
        ("USD 5, 20 EUR", "five U S dollars, twenty euros"),
        ("Rs. 500", "five hundred rupees"),
        ("$5/hr", "five dollars per hour"),
        ("$20/month", "twenty dollars per month"),
        ("$4.505", "four point five zero five dollars"),
        ("costs $$", "costs dollar dollar"),
    ],
)
def test_an_amount_of_money(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("50%", "fifty percent"),
        ("5.5 %", "five point five percent"),
        ("5-10%", "five to ten percent"),
        ("5 km", "five kilometers"),
        ("1 km", "one kilometer"),
        ("a 10-km run", "a ten kilometer run"),
        ("5km", "five kilometers"),
        ("72 °F", "seventy two degrees Fahrenheit"),
        ("-12.5°C", "minus twelve point five degrees Celsius"),
        ("It is 72°.", "It is seventy two degrees."),
        ("10 lb", "ten pounds"),
        ("2 lb. of beef", "two pounds of beef"),
        ("3 kg", "three kilograms"),
        ("20 mph", "twenty miles per hour"),
        ("60 km/h", "sixty kilometers per hour"),
        ("9.8 m/s²", "nine point eight meters per second squared"),
        ("5 m²", "five square meters"),
        ("5 sq ft", "five square feet"),
        ("100 mg/day", "one hundred milligrams per day"),
        ("6 ft. 3 in. tall", "six feet three inches tall"),
        ("5 in. long", "five inches long"),
        ("5 in 10", "five in ten"),
        ("5'10\"", "five feet ten inches"),
        ("He's 6'2\".", "He's six feet two inches."),
        ("2.5GB", "two point five gigabytes"),
        ("60Hz", "sixty hertz"),
        ("16 kHz", "sixteen kilohertz"),
        ("8 fl oz", "eight fluid ounces"),
        ("1h 20m", "one hour twenty minutes"),
        ('a 12" screen', "a twelve inches screen"),
        ('He said "I have 12" and left', "He said I have twelve and left"),
        ("the 5 W's", "the five W's"),
        ("1 h 30 min", "one hour thirty minutes"),
        ("6 s", "six seconds"),
        ("5 µm", "five micrometers"),
        ("10 k\u03a9", "ten kilohms"),
        ("1/2 tsp", "one half teaspoon"),
        ("1½ cups", "one and a half cups"),
        ("10 cm x 20 cm", "ten centimeters by twenty centimeters"),
        ("24 hrs.", "twenty four hours."),
        ("a 100 W bulb", "a one hundred watts bulb"),
    ],
)
def test_a_measure(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("1/2 cup", "one half cup"),
        ("3/4", "three quarters"),
        ("1/3 and 2/3", "one third and two thirds"),
        ("5/8", "five eighths"),
        ("22/7", "twenty two sevenths"),
        ("7/100", "seven hundredths"),
        ("3/47", "three over forty seven"),
        ("1 1/2", "one and a half"),
        ("1-1/2 cups", "one and a half cups"),
        ("½", "one half"),
        ("10-12 people", "ten to twelve people"),
        ("1st-3rd place", "first to third place"),
        ("10\u201312", "ten to twelve"),
        ("ages 5-7", "ages five to seven"),
        ("3 - 10", "three to ten"),
        ("10 - 3 = 7", "ten minus three equals seven"),
        ("5-3=2", "five minus three equals two"),
        ("1/4-1/2", "one quarter to one half"),
        ("16:9", "sixteen to nine"),
        ("3:1 ratio", "three to one ratio"),
        ("3x5", "three by five"),
        ("10x", "ten times"),
        ("1.5x faster", "one point five times faster"),
        ("24/7", "twenty four seven"),
        ("9/11", "nine eleven"),
    ],
)
def test_numbers_in_relation(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("call 555-123-4567 now", "call five five five, one two three, four five six seven now"),
        ("(555) 123-4567", "five five five, one two three, four five six seven"),
        ("555.123.4567", "five five five, one two three, four five six seven"),
        ("+1 555 123 4567", "plus one, five five five, one two three, four five six seven"),
        ("+44 20 7946 0958", "plus four four, two zero, seven nine four six, zero nine five eight"),
        ("1-800-555-0199", "one, eight zero zero, five five five, zero one nine nine"),
        ("555-0199", "five five five, zero one nine nine"),
        ("1-800-FLOWERS", "one, eight zero zero flowers"),
        ("911", "nine one one"),
        ("Boston, MA 02134", "Boston, M A zero two one three four"),
        ("DC 20001-1234", "D C two zero zero zero one, one two three four"),
        ("123-45-6789", "one two three, four five, six seven eight nine"),
        ("192.168.1.1", "one nine two dot one six eight dot one dot one"),
        ("1.2.3", "one point two point three"),
    ],
)
def test_a_code_is_read_digit_by_digit(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("#5", "number five"),
        ("No. 5", "number five"),
        ("No.5", "number five"),
        ("Nos. 5 and 6", "numbers five and six"),
        ("No. I won't.", "No. I won't."),
        ("pp. 10-12", "pages ten to twelve"),
        ("p. 5", "page five"),
        ("vol. 2, fig. 3", "volume two, figure three"),
        ("Ch. 3", "chapter three"),
        ("Apt. 5B", "apartment five B"),
        ("ext. 42", "extension forty two"),
        ("c. 1450", "circa fourteen fifty"),
        ("v2.0", "version two point zero"),
        ("v1", "version one"),
        ("approx. 5", "approximately five"),
    ],
)
def test_the_word_in_front_of_a_number(written: str, spoken: str) -> None:
    assert normalize(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("A4", "A four"),
        ("COVID-19", "COVID nineteen"),
        ("3D", "three D"),
        ("GPT-4", "G P T four"),
        ("B2B", "B two B"),
        ("MP3", "M P three"),
        ("T-1000", "T one thousand"),
        ("AK-47", "A K forty seven"),
        ("H2O and CO2", "H two O and C O two"),
        ("C-3PO", "C three P O"),
        ("7-Eleven", "seven Eleven"),
        ("a 5-year-old", "a five year old"),
        ("24-hour", "twenty four hour"),
        ("mid-1990s", "mid nineteen nineties"),
        ("9-to-5", "nine to five"),
        ("4K", "four K"),
        ("10k users", "ten thousand users"),
        ("5M users", "five million users"),
    ],
)
def test_letters_and_digits_are_separated(written: str, spoken: str) -> None:
    assert normalize(written) == spoken
