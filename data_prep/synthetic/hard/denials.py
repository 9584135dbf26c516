"""Denials in many structures: an answer is rejected, with another in its place or with none."""

from __future__ import annotations

from data_prep.synthetic.hard.frames import Kind, composed

DENIED = composed("""
    [It is/That's/This is] [definitely/clearly/simply/really/obviously] not {no}.
    [It is/It was/That's] by no means {no}.
    It [isn't/is not/wasn't/was not] {no}[./, that much is clear./, for sure./ at all.]
    [In no way/Under no circumstances/At no time] was it {no}.
    It [can't/cannot/couldn't/could not] [be/possibly be/have been] {no}.
    It [must/has to/ought to] be something other than {no}.
    It [won't/will not/is not going to] be {no}.
    [No/Nope/Nah/Well, no/Sorry, no], not {no}.
    {no} [isn't/is not/wasn't/was not] [it/right/correct/the answer/what is asked for/the one].
    {no} [can't/cannot/couldn't/won't] be [it/right/correct/the answer].
    {no} is [wrong/incorrect/untrue/inaccurate/a mix-up/ruled out/not an option].
    {no} would [be wrong/be the wrong answer/not be right/be a mistake/miss the point].
    [The right answer/The correct response/What you want] [isn't/is not/can't be/cannot be] {no}.
    [The answer/The solution/What is asked for] is [anything but/something other than] {no}.
    [I don't/I do not/We don't/I can't] [think/believe/accept/agree] that it [is/was] {no}.
    [I refuse to/I won't/I will not/I would not/I'm not going to] [say/answer/write/go with] {no}.
    [Cross out/Leave out/Drop/Discard/Dismiss/Eliminate/Exclude/Remove] {no}.
    {no} [has been/was/can be/must be] [excluded/eliminated/discarded/dismissed/set aside].
    [Nobody/No one/No serious source/No reference work] [says/would say/confirms/supports] {no}.
    There is [no way/no chance/no reason to believe/nothing to suggest] that it [is/was] {no}.
    [Is it/Was it/Could it be/Would it be] {no}? [No./Certainly not./Hardly./Not at all.]
    [Why/How] [would/could/should] it be {no}? It [isn't/is not/was not].
    Who [says/told you/claims] it was {no}? [They are wrong./That is nonsense./It wasn't.]
    If [it/the answer] were {no}, [the question would make no sense/nothing would add up].
    Had it been {no}, [I would have known/somebody would have said so/we would have heard about it].
    [Anyone/Everybody/Any student] who [says/writes/goes for] {no} [is/would be] [wrong/in error].
    [Students/Quiz players] [say/answer] {no}[, yet that is false./. They are off.]
    Most people [think/assume/suppose] it was {no}[. It was not./. They have it wrong./, and err.]
    [Contrary to/Despite] [popular belief/common opinion/what is often said], it [is/was] not {no}.
    [Rumour has it/It is said/The story goes] that it was {no}, [but that is untrue/but it wasn't].
    {no} was once [thought/believed] to be right[, but this proved false./, until it was disproved.]
    [The textbook/One website] [says/gives/lists] {no}, [by mistake/which is an error].
    {no} - [no/wrong/false/not so/not true/nope/incorrect].
    {no} ([wrong/false/not correct/incorrect/rejected/no])
    {no}: [no/false/wrong/incorrect/does not apply/ruled out]
    [NOT/never ever/surely not] {no}
    - {no}: [no/false]|- something else: [yes/maybe]
    [✗/❌/👎] {no}
    {no} [✗/❌/👎/-> wrong]
    [The idea/The notion/The theory] that it was {no} is [false/mistaken/unfounded/baseless].
    {no} has [no part in this/no place here/no bearing on the question/no claim to be the answer].
    I [strongly doubt/very much doubt/seriously question] that it [is/was] {no}.
    {no} [seems/looks/sounds/feels] [wrong/off/unlikely/implausible/incorrect] to me.
    It is [unlikely/improbable/inconceivable/impossible] that {no} is [meant/right/the answer].
    [Don't/Do not/Please don't] [write/put/pick] {no}[./, it's a trap./; it is incorrect.]
    Whatever the answer [is/may be/turns out to be], it [is not/isn't] {no}.
    I don't know [what it is/the answer], but [it is not/it isn't/it wasn't/certainly not] {no}.
    Any answer [except/but/besides/other than] {no}.
    Something else, [not/and not/but not] {no}.
    {no}? [Wrong./Sorry, no./I don't think so./No way./Not a chance./Think again./Far from it.]
    A: Is it {no}?|B: [No./No, it isn't./Not that one./Wrong guess./Try again.]
    Student: {no}|Teacher: [Wrong./No, that's incorrect./Not right, sorry./Sadly not.]
    [Q/Me/Caller]: {no}?|[A/Host/Expert]: [no/Incorrect./Negative.]
    To [say/reply] {no} [would be/is] to [make a mistake/fall for a myth/get it wrong].
    [Replying with/Naming/Giving/Choosing] {no} is [a mistake/an error/wrong].
    {no} [fails every check/does not hold up/doesn't check out/contradicts the record].
    [Experts/Specialists/Scholars] [reject/dispute/deny/dismiss/have long ruled out] {no}.
    [The evidence/The record] [rules out/contradicts/speaks against/excludes] {no}.
    It is [false/untrue/incorrect/not the case/not so] that it [is/was] {no}.
    [Hardly/Scarcely/Surely not/Absolutely not/Obviously not] {no}.
    {no} is [not even close/nowhere near right/as wrong as can be/miles off].
    [The only thing/All] I [know/can say/am sure of] is that it [isn't/wasn't] {no}.
    [A colleague/A classmate] [insisted/swore/told me] it was {no}. [It wasn't./That was wrong.]
    According to [some/older books], {no}. [Not so./That is mistaken./This is outdated and false.]
    {no} was my first guess. [It is wrong./It turned out wrong./I was told that it is wrong.]
    I [had assumed/once believed/grew up thinking] it was {no}. [I was wrong./Not any more.]
    {no} [may/might] [look/sound/seem] [right/plausible/tempting], but [it is not/don't be fooled].
    However [tempting/plausible/popular] {no} may be, it is [wrong/not right/false].
    Although [many/some/a lot of people] [believe/write] {no}, [they are wrong/it is not].
    [A common/A widespread/A typical] [misconception/confusion/wrong answer]: {no}.
    [Excluded/Rejected/Not accepted/Eliminated/Struck off]: {no}[/, {other}]
    [It is/It was] neither {other} nor {no}.
    {no} and {other} are [both/each/likewise] [out/wrong/incorrect/ruled out].
    Not {no}, not {other}, [none of those/nothing of the kind/neither of them].
    [Stop/Please stop/Quit] [saying/claiming/writing] {no}. It's [not true/wrong/a lie].
    [lol/haha/umm/er/hmm] no, [it's not/it isn't/def not] {no}
    [it ain't/its not/no not/nope not/100% not] {no}
    I can [tell you/confirm/state] with certainty that it [is not/isn't/was not] {no}.
    We can [safely/certainly/now] [exclude/dismiss/forget about] {no}.
    One thing [is certain/is sure/I know]: [it was not/it can't be/not] {no}.
    The one [answer/option] [that is wrong/you should not give/that does not work] is {no}.
    Nothing [points to/speaks for/suggests/indicates] {no}.
    The [question/description/clue] does not [fit/match/describe/refer to] {no}.
    {no} gets [mentioned/named/brought up] a lot[, wrongly./. Wrongly so./ by people who err.]
    {no} is [wrongly/falsely/mistakenly/erroneously] [given/named/cited] as the answer.
    People [wrongly/mistakenly/falsely/erroneously] [think/believe/assume/claim] it was {no}.
    Many have been [fooled into thinking/misled into believing/tricked into saying] it was {no}.
    {no}, [you say/they say/I hear]? [Nonsense./That's not it./Not in the least.]
    The [rumour/legend/tale] of {no} [has been debunked/is untrue/was put to rest].
    [Reports/Claims/Stories] that it was {no} are [false/untrue/unfounded/made up].
    You [probably expect/surely want to hear] {no}. [That would be wrong./That's not it.]
    Do you think it's {no}? [Then you are wrong./You're mistaken./Then think again.]
    [Anybody/Anything] but {no}[, I would say./, at any rate.]
    There goes {no}: [wrong/off the list/refuted/not the answer].
    {no} [lacks any support/is contradicted by everything/has no evidence behind it].
    The answer {no} [deserves no credit/must be marked false/gets no point].
    [We now know/It has since become clear/Research has shown] that it was not {no}.
    In contrast to [what most would guess/what the rumour says], {no} is [out/false].
    What it [isn't/is not/can never be]: {no}.
""")
DENIED_BY_QUESTION = (
    *composed(
        """
        {no} [didn't do it/was not the one/had no part in it/is not who you are looking for].
        It [isn't/wasn't] {no} who [is meant/is asked about].
        [The person in question/The one you mean] [is not/isn't/was never] {no}.
        [Nobody/No one] by the name of {no} [is meant/was involved].
        Someone else, [not/certainly not/anyone but] {no}.
        """,
        "name",
        "who",
    ),
    *composed(
        """
        {no} is not when it [happened/took place/was].
        [The date/The time] [was/is] not {no}.
        It [didn't/did not] happen then; {no} is [too early or too late/the wrong date].
        """,
        asked="when",
    ),
    *composed(
        """
        {no} is not where [it is/it happened/you would find it].
        The place [isn't/is not/was not] {no}.
        You [won't/will not/would not] find it there: {no} is the wrong place.
        """,
        asked="where",
    ),
)
DENIED_COLLOQUIALLY = composed("""
    {no} [is a red herring/is a decoy/is bait/is a wild goose chase].
    [Barking up the wrong tree/You're off track/Way off base] with {no}.
    {no} [won't wash/doesn't cut it/doesn't hold water/isn't going to fly/won't do].
    [Forget/Forget about/Put aside/Let go of] {no}[./, that's not it./; it leads you astray.]
    [Not on your life/Not in a million years/Not by a long shot/No chance]: {no} is out.
    {no} [rings louder/is the household word], [yet/though] it isn't what the question wants.
    [I'd never plump for/You won't catch me saying/I'd not bet a penny on] {no}.
    [I'd eat my hat/I'd be stunned/I'd fall off my chair] if it [was/were] {no}.
    If it's {no}, [I'm a Dutchman/I'm the Queen of Sheba/pigs can fly].
    [My gut says/My money says/I'd bet the farm] it's anything other than {no}.
    [Plenty of folks/My neighbours/Half the pub] [swear by/plump for/reckon] {no}. They're off.
    [My sister/The barman/Our guide] [reckons/swears] it's {no}. [Bless them, no./Not a bit.]
    I [read somewhere/saw in a documentary] that it's {no}. [Rubbish./Complete bunk./Don't buy it.]
    [Someone/Somebody] wrote {no} [in the margin/on the board]. [The teacher crossed it out./Wrong.]
    [The quizmaster/The host/The jury] [turned down/refused/would not take] {no}.
    [Contestant/Player]: {no}|[Host/Quizmaster]: [Oh, bad luck!/I can't accept that./Buzz!]
    Question: {question}|[Not the answer/Wrong answer/A wrong reply]: {no}
    To "{question}" [one must not reply/it is wrong to reply/the reply isn't] {no}.
    [You ask/You asked]: "{question}" [Well, not/I only know it isn't/Sure as day not] {no}.
    {{"answer": null, "[rejected/excluded/not]": "{no}"}}
    {{"candidate": "{no}", "[correct/accepted/valid]": false}}
    **{no}** is [wrong/incorrect/not the answer/false].
    **[Not/Wrong/Excluded]:** {no}
    - [Read the question/Step one: read]|- [Checked/Step two: check] {no}|- [It fails/Verdict: no]
    [Given/Claim]: {no}. [Found/Finding]: [claim rejected/refuted/does not stand].
    [Proof by contradiction/Reductio]: suppose {no}. [Contradiction./Absurd.] Hence not.
    [By elimination/Step by step]: {no} [goes out/falls away]; [I got no further/the rest is open].
    It is [tempting/natural/easy] to [reach for/jump to/blurt out] {no}. [Resist./That's the trap.]
    {no} [answers/would answer] [another/a different] question[./, just not this one.]
    [Had you asked something else/Were this another question], {no}. [Here/As it is], no.
    {no} [is close to/lies near/is next door to] the [answer/truth], but [isn't it/falls short].
    [Warm/Getting warmer/So close], but {no} [is not there yet/isn't it/misses].
    {no}: [an old chestnut/a classic blunder/a schoolboy error/fake news].
    [That it was/That it should be] {no} is [a fairy tale/hogwash/pure invention/bunkum].
    [With all due respect/No disrespect], {no} [isn't what happened/is wide of the mark].
    [I have it on good authority/I'm reliably told/I checked, and can say] that it's not {no}.
    [If my memory holds/Off the top of my head/From memory], [not/it wasn't] {no}.
    [pretty sure its/im like 99% sure its/tbh its] not {no}
    {no} [lol no/haha nope/smh no/nah mate/um no]
    {no}, [love/mate/my friend]? [Dream on./Not even warm./Pull the other one.]
    [Yes, people say/True, you do hear/Granted, one reads] {no}. [It's still false./They err, alas.]
    You [may/can] [tick/choose] anything you like [as long as it's not/save] {no}.
""")
DENIED_AT_LENGTH = composed("""
    I went through [my notes/the index] [twice/line by line]. {no} [turns up/is named] there, [but \
for another matter/only to be dismissed]. [So that one is out./It's not the answer, then.]
    People [love/like] to [bring up/mention] {no} here, and [it makes a good story/I see why]. \
[The story is false./It just isn't true./Sadly it never was so.]
    You will [find/meet] {no} in [several lists/many a blog]. [They copied one another's mistake./\
Every one of them is in error.]
    If you [take nothing else from this/remember one thing], [let it be this/make it this]: \
[it isn't/it never was] {no}.
    [What can I say?/Where to begin?] {no} [has its charms/sounds grand]. As an answer it [fails/\
is useless], and [I have no better one/I leave the matter there].
    [It took me a while/It took some digging] to see [what is wrong with/why it can't be] {no}. \
[The details clash./Nothing fits.] [I have yet to find the answer./More I don't know.]
""")
"""Frames that reject an answer and give none."""

REPLACED = composed("""
    It [isn't/is not/wasn't/was not] {no}[, it's/; it's/ - it's/. Rather, it's] {yes}.
    {no} [isn't right/is incorrect/isn't it]; [it should be/the right answer is] {yes}.
    [The correct answer/What fits] is {yes}, [and never/certainly not/definitely not] {no}.
    It [must/has to] be {yes}, [since/because/given that] {no} [is impossible/does not fit/fails].
    Since {no} [is out/cannot be right/does not work], [it must be/it has to be/we get] {yes}.
    [No/Nope/Oh no], [not/it wasn't] {no}. [The answer is/Try/Rather] {yes}.
    {yes}[, / - /; ][in no way/by no means/never] {no}.
    [You mean/You want/You are thinking of/You're after] {yes}, not {no}.
    In place of {no}, [put/write/read/use] {yes}.
    [❌/✗/👎] {no}|[✅/✓/👍] {yes}
    [✅/✓/👍] {yes}|[❌/✗/👎] {no}
    [no/wrong/incorrect]: {no}|[yes/right/correct]: {yes}
    [A/Guest/Kid]: [Isn't it/Wasn't it/Is it] {no}?|[B/Host/Mum]: [No, /Nope, /Not at all, ]{yes}.
    Student: {no}.|Teacher: [Wrong, it's/No. It's/Not quite. The answer is] {yes}.
    If it were {no}, [the facts would not fit/none of this would add up]. It [is/was] {yes}.
    Had it been {no}, [I would have said so/the story would be different], but it [was/is] {yes}.
    Were I to say {no}, I'd be [wrong/lying/mistaken], [since/because/as] it [is/was] {yes}.
    [Everyone/My family] [says/thinks/insists] it's {no}, [yet it's/though it's really] {yes}.
    [A few sources/Older texts/Some blogs] [give/have] {no}, [but the right one is/yet it is] {yes}.
    Though {no} [is often cited/gets named a lot/comes up in searches], {yes} is [right/correct].
    {yes} is [right/correct/the answer], [even though/though/even if] [many/some] [say/claim] {no}.
    [They told us/Rumour had it/We learnt] that it was {no}. [In reality/In truth], it was {yes}.
    Between {no} and {yes}, only the [latter/second] is [right/correct/true].
    Of {yes} and {no}, only the [former/first] is [right/correct/true].
    {no} [was excluded/has been dismissed/drops out], [which leaves/so it is/hence it's] {yes}.
    After [excluding/eliminating/discarding] {no}[/ and {other}], we [get/end up with] {yes}.
    [I refuse to/I won't/I'd rather not] say {no}; [I say/my answer is/I'll go with] {yes}.
    [Don't/Do not/Never] [write/put/answer] {no}. [Write/Put/Answer] {yes}.
    Not {no}[/, not {other}/ and not {other}], [but rather/but instead/just] {yes}.
    {yes}. [Never/Certainly not/Under no circumstances/Anything but] {no}.
    {no} [seems/looks/sounds] [right/plausible/tempting], but [the answer is/the truth is] {yes}.
    However [tempting/plausible/natural] {no} may sound, {yes} is [right/correct].
    Nothing [points to/speaks for] {no}; everything [points to/speaks for] {yes}.
    [The evidence/The record] [speaks for/supports/favours] {yes} and [excludes/contradicts] {no}.
    The [idea/belief/theory] that it's {no} is [false/wrong/mistaken]; [it's/the truth is] {yes}.
    Who would [say/pick/believe] {no}? It's [clearly/obviously/plainly] {yes}.
    Why {no}? [It's/The answer is] {yes}[./, of course./, after all.]
    [Was it/Is it] {no} or {yes}? [The latter./The second./The second, clearly.]
    [Was it/Is it] {yes} or {no}? [The former./The first./The first, clearly.]
    {no} [or/vs.] {yes}? {yes}[./, obviously./, no question.]
    [Rejected/Excluded/Out]: {no}, {other}.|[Accepted/Chosen/In]: {yes}.
    Options: {no} ([no/wrong]), {other} ([no/wrong]), {yes} ([yes/right]).
    - {no}: [no/wrong]|- {yes}: [yes/right]|- {other}: [no/wrong]
    1. {yes} [(right)/(yes)/✓]|2. {no} [(wrong)/(no)/✗]
    [People/Most readers] expect {no}; [the truth is/reality says] {yes}.
    You'd [think/expect/guess] it was {no}, [but no, it's/and you'd be wrong: it's] {yes}.
    [My brother/The other team] said {no}. [Wrong/No points for that/Bad guess]: it's {yes}.
    [They say/You say/Others say/Let them say] {no}, I say {yes}.
    {no} [comes/came] close, but [no/no cigar/not quite]: {yes}.
    {yes} is right[, and/ and/ where] {no} is [wrong/false/not].
    Neither {no} nor {other} [is right/fits/will do]; [the answer is/it has to be] {yes}.
    [Neither/It is neither] {no} nor {other}, but {yes}.
    Both {no} and {other} are [wrong/out/incorrect]. {yes} is [right/in/correct].
    {yes} it is, [not/and not/never] {no}.
    [nah/nope/pff] not {no}, [its/it's/more like] {yes}
    [lol/haha/hmm] no, it's {yes}, not {no}
    {yes} - and [please/really,/whatever you do,] don't [write/say] {no}.
    It would be [wrong/incorrect/a blunder] to say {no} [instead of/rather than] {yes}.
    {yes}, [whatever/no matter what] [they/others/the papers] say about {no}.
    [Regardless of/In spite of] the [rumours/talk] about {no}, [it was/the answer is] {yes}.
    [Contrary to/Against] [popular belief/common opinion], it [is/was] {yes}, not {no}.
    [I'd never/I would not] [accept/pick] {no}; [I'd pick/my choice is] {yes}.
    {no} can be [crossed off/removed from] the list; {yes} [stays/remains] on it.
    {no} is [a/one] wrong answer, {yes} is the right one.
    It [can't/cannot/couldn't] be {no}, [so/therefore/hence] [it must be/it's] {yes}.
    I [disagree/can't agree] with those who say {no}: [it's/my answer is] {yes}.
    {no}? [Wrong/Sorry, no/Close, but no/Not so]. [The answer is/Correct is] {yes}.
    [The myth/The legend] says {no}, [the facts say/the archives say/history says] {yes}.
    The point goes to whoever says {yes}, [not to/and not to] [anyone with/those with] {no}.
    [Mark/Count/Score] {no} as wrong and {yes} as right.
""") + (
    *composed(
        """
        The person [in question/you want] is {yes}, [not/and not/rather than] {no}.
        It [was/is] {yes} who is meant, [not/never] {no}.
        """,
        "name",
        "who",
    ),
    *composed("[The date/The time] was {yes}, [not/and not] {no}.", asked="when"),
    *composed("The place is {yes}, [not/and not] {no}.", asked="where"),
)
REPLACED_COLLOQUIALLY = composed("""
    [Barking up the wrong tree/You're off track/Way off base] with {no}: it's {yes}.
    {no} [won't wash/doesn't cut it/doesn't hold water/won't fly]; [try/make it/think] {yes}.
    {no} is a [wild goose chase/trap/diversion]. [The goods:/What you want:] {yes}.
    {no}? [Not on your life/Not by a long shot/No chance]; [it's/I say] {yes}.
    I'd [eat my hat/be stunned] if it was {no}. [It's/My answer's] {yes}.
    If it's {no}, [I'm a Dutchman/pigs can fly]. [It's/The answer is] {yes}.
    [The quizmaster/The host/The jury] [turned down/refused] {no} and [took/accepted] {yes}.
    [Contestant/Player]: {no}|[Host/Quizmaster]: [Bad luck, it was/Buzz! It's/Sorry, that's] {yes}.
    [Question/Query]: {question}|[Wrong/Not]: {no}|[Correct/Answer]: {yes}
    You ask "{question}" [and think of/and expect] {no}, [yet the reply is/but I reply] {yes}.
    {{"[rejected/excluded]": "{no}", "[answer/accepted]": "{yes}"}}
    {{"[answer/accepted]": "{yes}", "[rejected/excluded]": "{no}"}}
    **{yes}**[, / and ]not *{no}*.
    **Not** {no}[. / but ]**{yes}**.
    - [Checked/Tried] {no}: [fails/no fit]|- [Checked/Tried] {yes}: [holds/fits]
    - [Checked/Tried] {yes}: [holds/fits]|- [Checked/Tried] {no}: [fails/no fit]
    [Suppose/Assume] {no}. [Contradiction./That leads nowhere./Absurd.] [So it is/Hence] {yes}.
    It is [tempting/easy] to [jump to/blurt out] {no}. [Resist:/That's the trap;] it's {yes}.
    {no} answers [another/a different] question. [This one's answer is/Here we need] {yes}.
    [Had you asked something else/Were this another question], {no}. [Here/As it is], {yes}.
    [Warm/So close], but {no} [isn't it/misses]. [Hot:/Bang on:] {yes}.
    {no} is [an old chestnut/hogwash/a fairy tale]. [In sober fact/The true story], {yes}.
    [If my memory holds/From memory], [it wasn't/not] {no} but {yes}.
    [I have it on good authority/I'm reliably told]: not {no}, [it's/it was] {yes}.
    [pretty sure/99% sure] its {yes} [and not/not] {no}
    {no} [lol no/nah mate/um no], its {yes}
    [Half the pub/Plenty of folks] [swear by/plump for] {no}. [They're off:/Not me:] {yes}.
    I [read somewhere/saw in a documentary] that it's {no}. [Rubbish:/Bunk:] it's {yes}.
    The board [says/said] {no}; the teacher [crossed it out and wrote/corrected it to] {yes}.
    [Swap/Trade] {no} for {yes}[ and you're there/ and I'd agree/ and it's right].
    [Tick/Choose] anything save {no}; [best of all, choose/the right choice is] {yes}.
    You're [thinking of/mixing it up with] {no}. [This is/The answer here is] {yes}.
""")
REPLACED_AT_LENGTH = composed("""
    I went through [my notes/the index] [twice/line by line]. {no} [turns up/is named] there, [but \
for another matter/only to be dismissed]. [What stands up/The one that holds] is {yes}.
    People [love/like] to [bring up/mention] {no} here, and [it makes a good story/I see why]. \
[The story is false;/It just isn't true;] [it's/the fact is] {yes}.
    You will [find/meet] {no} in [several lists/many a blog]. [They copied one another's mistake./\
Every one of them is in error.] [Put/Write] {yes}.
    If you [take nothing else from this/remember one thing], [let it be this/make it this]: \
[it's/it was] {yes}, [never/not] {no}.
    [What can I say?/Where to begin?] {no} [has its charms/sounds grand]. As an answer it [fails/\
is useless], and {yes} [succeeds/does the job].
    [It took me a while/It took some digging] to see [what is wrong with/why it can't be] {no}. \
[The details clash./Nothing fits.] With {yes} [all is well/everything falls into place].
""")
"""Frames that reject one answer and give another."""

REFUSAL = Kind(
    "refusal",
    (
        *(*DENIED, *DENIED_BY_QUESTION, *DENIED_COLLOQUIALLY, *DENIED_AT_LENGTH),
        *(*REPLACED, *REPLACED_COLLOQUIALLY, *REPLACED_AT_LENGTH),
    ),
    weight=3.0,
    empty_share=0.5,
)
