"""Affirmations: one answer is claimed, in negative words or beside others that are only named."""

from __future__ import annotations

from data_prep.synthetic.hard.frames import Kind, composed

DOUBLE_NEGATIONS = composed("""
    It [isn't/is not/wasn't/was not] [anything/something] other than {yes}.
    It [can't/cannot/couldn't] be anything [except/besides] {yes}.
    There is no [question/dispute] [about it: it's/that it was/that it's] {yes}.
    [Nobody/No one] [can/could/would/will] deny that it was {yes}.
    It would be [wrong/foolish/a mistake] to [deny/dispute/question] that it is {yes}.
    It is [impossible/pointless] to [deny/dispute] that it was {yes}.
    I [may not/might not/don't] know much, but it's {yes}.
    No, [really/seriously/I am not joking], it's {yes}.
    [Don't/Do not/Never] [question/deny/dispute] it: {yes}.
    What could it be [if not/other than/apart from] {yes}?
    [Isn't/Wasn't] it {yes}? [Indeed./Yes, of course./Sure it is.]
    Is it {yes}? [Yes./Certainly./Of course./Absolutely./It is.]
    How could it not be {yes}? [It is./Of course it is./All signs say so.]
    If it [weren't/were not] {yes}, [nothing would make sense/the records would all be wrong].
    Those who [deny/dispute/question] that it's {yes} are [wrong/mistaken].
    The claim that it's not {yes} is [false/wrong/nonsense/a myth].
    It is [not true/false/untrue] that it [isn't/is not] {yes}; it is.
    [Nobody/No source/No expert] [disputes/denies/contradicts] that it was {yes}.
    Nothing [speaks against/contradicts] {yes}[; it is right./, which is correct.]
    {yes} has never been [disputed/refuted/disproved/in question].
    {yes} was [questioned/disputed] for years, [but it is right/but is now beyond dispute].
    [Critics/Some people] said {yes} was wrong. [They were mistaken./It is right all the same.]
    [Not everybody knows this/Most people don't know], but it's {yes}.
    [It's not a trick question/No trick here/This isn't hard/Nothing to it]: {yes}.
    No need to [guess/look it up/ask around]: {yes}.
    [Not that it matters much/Not to brag/No offence], but it's {yes}.
    Never mind the details, it's {yes}.
    I won't [keep you waiting/beat around the bush/make a secret of it]: {yes}.
    I have no [hesitation/trouble/qualms] in saying {yes}.
    [Unquestionably/Undeniably/Without question/Beyond any dispute] {yes}.
    I can't think of [any answer but/anything but/a better answer than] {yes}.
    I wouldn't [hesitate/think twice]: {yes}.
    [Wrong answers/False rumours] abound; the right one is {yes}.
    Don't listen to [the others/rumours/anybody else]: it's {yes}.
    {yes}, [not that anyone asked/and I'm not making this up/no kidding].
    {yes}. No [question/contest/ifs or buts/two ways about it].
    Nope, I'm not [wrong/mistaken/kidding]: it's {yes}.
    You can't [go wrong with/miss with/do better than] {yes}.
    It's {yes}, isn't it? [Yes, it is./It surely is.]
    [Nothing/No other answer] comes close to {yes}.
    I [used to doubt/once disputed/did not believe] that it was {yes}. [I was wrong./It was.]
    {yes} [cannot/can't/could not] be [wrong/doubted/disputed].
    That {yes} is [wrong/false/incorrect] is [itself untrue/what only fools say].
    [Hardly anyone/Nobody] [gets/got] this wrong: {yes}.
    Not answering {yes} [would be/is] [a mistake/an error].
    I'd be [lying/mistaken/wrong] if I didn't say {yes}.
    There's [nothing wrong with/no error in/no fault in] saying {yes}.
    {yes} is not [wrong/false/incorrect/a mistake].
    The answer {yes} [has no rival/needs no defence/was never in danger].
""")

MARKED = composed("""
    A: Is it {yes}?|B: [Yes./Right./Correct./It is./You got it.]
    [Student/Guest]: {yes}|[Teacher/Host]: [Right./Correct, well done./Yes!/Full marks.]
    Q: {yes}?|A: [yes/Correct./Affirmative.]
    {yes} ([right/true/correct/yes])
    {yes}: [yes/true/right/applies]
    {yes} [✓/✅/👍/-> right]
    [✓/✅/👍] {yes}
    [Accepted/Confirmed/Chosen/Right answer]: {yes}
    - {yes}: [yes/true]|- something else: [no/false]
    [It is true/It is the case/It is a fact/I confirm] that it was {yes}.
    {yes}, [you say/they say/I hear]? [Right./Quite so./Exactly.]
    [People/Students] [say/answer] {yes}[, and they are right./, which is correct./. That is true.]
    [Experts/Scholars/Specialists] [accept/confirm/agree on/settle on] {yes}.
    {yes} was my first guess. [It is right./It turned out right./I was told that it is right.]
    {yes} is [rightly/correctly] [given/named/cited] as the answer.
    {yes} may [look/sound] [wrong/odd/unlikely], but it is [right/true/the answer].
""")

NAMED_BESIDE = composed("""
    [Several candidates exist/Three come up]: {no}, {other}, {yes}. Only the last [fits/holds].
    [Let me go through them/In turn]. {no} [fails/is out]. {other} [fails/is out] too. {yes} fits.
    {yes}, ahead of {no}[./ and {other}.]
    {yes}[, with {no} in second place./; {no} came second.]
    {yes}. ([Compare/Cf./Related:] {no})
    {yes} ([previously/until renamed/in those days/at the time called] {other})
    {yes}; [before the renaming/in earlier times/in older books] it [was called/went by] {other}.
    [Officially/Formally/On paper] {yes}, [in earlier times/at first] {other}.
    What [older/early] books call {other} is [now/today] {yes}; [that is/this is] the answer.
    {yes} [replaced/succeeded/came in for] {other}[, and is the answer./, so the answer is {yes}.]
    Some say {no}, [but I say/but in truth it is/the correct answer being] {yes}.
    Others [may mention/have proposed/favour] {no}; [still,/even so,/nonetheless] it is {yes}.
    [While/Whereas] {no} [has its supporters/is a fair guess/was considered], it is {yes}.
    {no} [deserves a mention/is worth a mention], {yes} deserves the point.
    [Leaving aside/Setting aside] {no} and {other}, which [do not fit/fail], there is {yes}.
    Of all the [names/options/answers] on the table ({no}, {other}, {yes}), [I take/I pick] {yes}.
    {yes}, [unlike/in contrast to/as distinct from] {no}, is [right/correct/what is meant].
    {no} [and {other} /]may be [famous/well known], but the question [is about/asks for] {yes}.
    [Question/Task] understood. {no} [belongs elsewhere/is another story]. Here it is {yes}.
""")

LONG = composed("""
    [This needs a closer look/Let me explain]. {no} is [often mentioned/what comes to mind first], \
and I can see why, but it [does not match/misses] what is asked. {other} [is also named/turns up] \
at times, [again without support/by mix-up]. [What remains/The one that fits] is {yes}.
    To [answer/settle] this we compare the options. [First,/To begin,] {no}: a [natural/popular] \
guess, yet [wrong/not correct]. [Second,/Then] {other}: [no better/just as wrong]. Finally, {yes}, \
which [matches/fits] in every respect.
    The short answer is {yes}. [The longer one:/In more detail:] people [bring up/mention] {no} \
because it [is better known/sounds alike], and {other} because [of a mix-up/lists have both]. \
Neither [changes/affects] the answer.
    I [looked at/went over] {no} and {other} [in some detail/with care]. Both [have/had] to be \
[dropped/ruled out], as [the details are wrong/they answer another question]. [I say/It's] {yes}.
    [Background/Context]: for a long time [the usual/the common] reply was {no}. [Later/In time] \
that was [corrected/revised], and [today/now] the accepted answer is {yes}.
    {yes}. I [mention/name] {no} only [since/because] it is [a frequent/the usual] wrong answer, \
and {other} [since/because] [lists/textbooks] [add it/have it] by [mistake/accident].
    [There is/I see] some [confusion/disagreement] in the sources about {no} and {other}; [having \
read them/when one checks], neither [stands up/survives], and {yes} is [confirmed/what is left].
""")

AFFIRMATION = Kind("affirmation", (*DOUBLE_NEGATIONS, *MARKED, *NAMED_BESIDE, *LONG), weight=3.0)
