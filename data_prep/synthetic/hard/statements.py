"""Statements: one answer is put forward, in the plain and colloquial ways in which people do."""

from __future__ import annotations

from data_prep.synthetic.hard.frames import Kind, composed

CHOSEN = composed("""
    I'll [plump for/opt for/settle on/run with] {yes}.
    [Lock in/Lock me in for/Pencil me in for/Put me down for] {yes}[./, please.]
    [Put/Jot/Write] {yes} [down/on my sheet/in the box] [for me/and move on].
    I'd [stake my lunch/put a fiver/bet the farm/wager good money] on {yes}.
    [Gun to my head/If pressed/Forced to choose/When push comes to shove], {yes}.
    My [vote/point/nod/tick] goes to {yes}.
    [I'm all in on/Sign me up for/I'm sold on/I'm firmly in the camp of] {yes}.
    [Hands down/Far and away/By a mile/Every time], {yes}.
    {yes} [gets my vote/takes it/wins it for me/has my blessing].
    [I'm calling it/Calling it now/I'm planting my flag]: {yes}.
    [Dollars to doughnuts/Ten to one/A pound to a penny] it's {yes}.
    If I were a [betting/gambling] [man/woman], I'd [say/back/put it all on] {yes}.
    [Let's say/Let's go with/Let's make it/Shall we say] {yes}[. That's my answer./ and be done.]
    I [hereby/officially/formally] [declare/submit/nominate] {yes}.
    [Stick/Chalk/Mark] me down as [saying/a vote for/having said] {yes}.
    [It boils down/It comes down/It all adds up] to {yes}.
    {yes} [is what I've got/is what I have here/is where I land/is my pick/is my best shot].
    My [gut/instinct/nose] [says/tells me] {yes}, [so there you go/and I trust it].
    [I'd hang my hat on/I'd sign my name under/I'd vouch for] {yes}.
    [No prizes for guessing/Surprise, surprise/You guessed it/Drum roll, please]: {yes}.
    [That would be/That'd be/That'll be/It has got to be/It's gotta be] {yes}.
    [Taking a stab at it/Having a crack at this/A shot in the dark], [I say/I'd go] {yes}.
    [If I'm allowed one guess/With my one guess/For my single try], I take {yes}.
    [Show of hands here says/The table voted for/Our team settled on/We all wrote] {yes}.
    {yes} or [I'm a Dutchman/I'll eat my hat/I'm a monkey's uncle].
    [Look no further than/You want/You'll be wanting/Say hello to] {yes}.
    {yes}[, plain and simple/, full stop/, as sure as eggs is eggs/, clear as day].
    [The long and the short of it/The bottom line/The nub of it/The upshot]: {yes}.
    [I've narrowed it down/I've boiled it down/I've whittled it down] to one answer: {yes}.
    [Bingo/Easy peasy/Piece of cake/Child's play/A doddle]: {yes}.
""")

REMEMBERED = composed("""
    [If my memory holds/Unless my memory fails me/From memory/Off the top of my head], {yes}.
    I [distinctly/clearly/vividly] [remember/recall] [reading/hearing/learning] it was {yes}.
    [We had this at school/This came up in class/I learnt this as a child]: {yes}.
    [My grandmother/My old teacher/Our guide] [always said/taught me] {yes}, [and so say I/rightly].
    [I was told/I've been told/A little bird told me] {yes}, and that's [my answer/what I'll put].
    [I read somewhere/I saw in a documentary] that it's {yes}.
    [According to/Going by/If we go by] [the encyclopedia/my notes/the almanac], it's {yes}.
    [The textbook answer/The stock answer/The classic answer/The schoolbook reply] is {yes}.
    [It rings a bell/This rings a bell/It's coming back to me]: {yes}.
    [Don't ask me how I know/I couldn't tell you why I know this], but {yes}.
    [Last time this came up/When we had this in the pub quiz], it was {yes}.
    [It's on the tip of my tongue/Give me a second/Wait for it]... {yes}!
    [As every/As any] [schoolchild/fan/local] [knows/will tell you], {yes}.
    [By all accounts/By common consent/As is well documented/As the record shows], {yes}.
    [Legend and fact agree/All my sources agree/Three books out of three say]: {yes}.
    [I looked it up/I checked/I googled it] and [it says/got/found] {yes}.
    [Pretty sure/Fairly confident/Quite certain] [it's/it was] {yes}.
    [I could swear/I'd swear/I would have sworn, and still do,] it's {yes}.
    [Correct me if I'm wrong, but/I stand to be corrected, but/Call me out if not, but] it's {yes}.
    [I want to say/I'm inclined to say/I'm minded to say/I'd be tempted to say] {yes}.
    [To the best of my knowledge/For all I know/To my mind/In my book], {yes}.
    [The literature gives/Reference works list/The standard account has] {yes}.
    [It is generally accepted/It is recorded/It is established/The consensus is] that it was {yes}.
    [The archive/The museum label/The official site] has it as {yes}, and I [concur/agree].
""")

SPOKEN = composed("""
    [Um/Uh/Erm/Hmm], [so like/I mean/you know], {yes}[?/, right?/, yeah.]
    [Oh/Ooh/Ah], [I know this one/I've got this/that's easy]! {yes}!
    [Yeah so/Right so/Okay so/Ok,] [it's/that's] {yes}
    [pretty sure its/im like 99% sure its/prob/tbh its/ngl its] {yes}
    {yes} [lol/haha/imo/fwiw/iirc/afaik/i think]
    [iirc/afaik/imho/fwiw] {yes}
    {yes} [:)/😊/🎉/🙌/🤓/😎]
    [bro/dude/mate/man/folks] it's {yes}
    [easy/ez/duh/obvs/simple], {yes}
    [Sure thing/Happy to help/Great question/No worries/My pleasure]! It's {yes}.
    [Hey/Hi/Hello] there, [the answer you want is/you're after/that one is] {yes}.
    {yes}, [love/buddy/my friend/dear reader/if you please].
    {yes}!!! [Finally one I know./I love this topic./Do I win?/Too easy.]
    [Long story short/TL;DR/In a nutshell/In a word/To cut a long story short]: {yes}
    [Lemme think.../Let me see.../Thinking.../Well now...] {yes}[./, yeah./, that's it.]
    [Well I never, a question I know/At last something I know/This one I can do]: {yes}.
    [A little known fact/Fun fact/Trivia time]: it's {yes}.
    [you're looking for/ur looking for/u want/try] {yes}
    {yes} [my guy/fam/boss/chief], [trust me/for real/no cap]
    [Yup/Yep/Yes indeed/Aye]: {yes}.
    {yes}... [I think that's it/sounds about right/that's the one/there, I said it].
    [Ha/Aha/Oho], [gotcha/an old chestnut/my favourite]. {yes}.
""")

EXAM = composed("""
    {question} [Answer/Solution/Reply/Response]: {yes}
    ["{question}" -/"{question}" Well,] {yes}.
    [You ask/You asked/You want to know]: "{question}" [My reply:/I reply:/That's] {yes}.
    To the question "{question}" [I answer/the reply is/one must answer] {yes}.
    [Asked/When asked] "{question}", [I'd answer/I'd reply/you can safely say] {yes}.
    [Question/Prompt]: {question}|[My answer/Reply/Solution]: {yes}
    Q. {question}|A. {yes}
    [Ans/Ans./Soln/A/=>/->/>>] {yes}
    [Answer/Final answer/FINAL/Result]: **{yes}**
    **{yes}**[/ is the answer./ is what the question asks for.]
    The [answer/solution/correct entry/requested item] is *{yes}*.
    # [Answer/Result/Solution]|{yes}
    [Here you go/As requested/See below]:||**[Answer/Result]**|> {yes}
    {{"[answer/final_answer/response/result]": "{yes}"}}
    {{"question": "{question}", "[answer/output]": "{yes}"}}
    ```|{yes}|```
    [Output/Return value/Retrieved answer/Prediction]: {yes}
    The answer is $\\boxed{{{yes}}}$.
    [final/answer/result] = {yes}
    [Given/Known]: the question above.|[Required/Sought]: one answer.|[Result/Therefore]: {yes}
    - [Question read/Step one: read]|- [Facts recalled/Step two: recall]|- Final answer: {yes}
    * The question [has one answer/is clear]|* [It is well known/I know it]|* [So/Hence]: {yes}
    1. [Topic/Subject]: see the question|2. [Difficulty/Level]: easy|3. [Answer/Solution]: {yes}
    [No. 7/Question 3/Item 12/Task b)]: {yes}
    [Candidate's answer/Examinee's reply/My entry]: {yes}
    [The requested information is/In response to your query/With regard to your question]: {yes}.
    [Fill in the blank/Gap]: ____ = {yes}
    [Quizmaster/Host]: {question}|[Contestant/Player]: {yes}[, final answer./!/.]
    "{yes}" [is my reply/is what I'd write/will do as an answer/would be my entry].
    [One-word answer/Brief answer/Short form/Telegram style]: {yes}
""")

EXPLAINED = composed("""
    {yes}. [The reasoning is simple/Here is why]: [it alone fits/nothing else matches] the question.
    {yes}, [which is/this being] [common knowledge/on record/easily checked in any handbook].
    {yes}; [the details/the sources/the dates] all [line up/agree/point that way].
    {yes} [because/since/as] [that is what the records say/every part of the clue fits it].
    I say {yes}, [having checked/after checking] [two books/my notes/the usual sources].
    {yes}. [I learnt it/I picked it up/I know it] from [a book/a talk/a friend in the field].
    [Reasoning/Explanation]: the clue fits [only one thing/one thing alone].|[Answer/So]: {yes}
    [By elimination/By a process of elimination/Working backwards], [it is/I get/I arrive at] {yes}.
    [Think about it/Consider the wording/Read it again]: "{question}" [Clearly/Surely] {yes}.
    The [key/trick/clue] [lies/is] in the wording, and it [leads/takes us/points] to {yes}.
    {yes}. [You can verify it/Look it up/It's easy to check] in [any atlas/any good reference book].
    [Step by step/Thinking aloud]: what is asked? "{question}" What do I know? {yes}. So: {same}.
    {yes}. [To repeat/Once more/Again, in short]: {same}.
    {yes}. [As I said/In other words/That is]: {same}, [and that's all/nothing more to it].
    I'm [only a layman/no historian/a bit slow], but [it has to be/surely it's] {yes}.
""")

BESIDE = composed("""
    [Folk/Plenty of folks] will [tell you/swear it's] {no}; [the truth is/fact is,] {yes}.
    [My sister/The barman] [swears by/plumped for/reckons] {no}. [Me, I say/I say] {yes}.
    {yes}. [Some/One or two people] will [shout/cry] {no}, [let them/they have it muddled].
    [As against/As opposed to/Over and above] {no}, I [put forward/offer/propose] {yes}.
    [Forget about/Put aside/Leave out] {no}: [the goods are/the prize goes to/here it's] {yes}.
    {yes} [pips/beats/trumps/edges out] {no}[./ every time./ on every count.]
    I [toyed with/had a flirtation with/dallied with] {no}; [sanity prevailed/I came to]: {yes}.
    Where others [see/read] {no}, I [see/read] {yes}, and [I have it in writing/rightly].
    [Yes, there's also/Granted, there's] {no}, but the one you're [after/asking about] is {yes}.
    {no} [rings louder/is the household word], [though/yet] the [question wants/task wants] {yes}.
    [Not to be confused with/Don't mix it up with] {no}: [here the answer is/we want] {yes}.
    {yes}. ([People mix this up with/Often muddled with/Not to be confused with] {no}.)
    [See also/Compare with/Related to] {no} and {other}; [the answer proper is/answer:] {yes}.
    [The runner-up is/Second prize goes to/Honourable mention for] {no}; [first is/winner:] {yes}.
    [Don't let/Never let] {no} [lead you astray/throw you off]. [It's/You want] {yes}.
    {no} [is a red herring/is a decoy/is bait], {yes} is the [real thing/genuine article/real deal].
    {yes}, [with all due respect to/no disrespect to/whatever the merits of] {no}.
    [Team/Camp] {no} is [loud/large]; [count me with/I'm with] those for {yes}.
""")

STATEMENT = Kind(
    "statement", (*CHOSEN, *REMEMBERED, *SPOKEN, *EXAM, *EXPLAINED, *BESIDE), weight=3.0
)
