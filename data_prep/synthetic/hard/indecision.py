"""Indecision: several answers are weighed, and one of them is chosen in the end or none is."""

from __future__ import annotations

from data_prep.synthetic.hard.frames import Kind, composed

UNDECIDED = composed("""
    [It is either/It's either/It was either] {no} or {other}.
    [It's either/Either] {other} or {no}[./, one of the two./, I can't say which.]
    [Maybe/Conceivably] {no}[, maybe/, or perhaps/ or possibly/, then again perhaps] {other}.
    It [could/may] be {no}[, or it could be/, though it might also be/, or just as well] {other}.
    It [could/may] be {other}[, or it could be/, though it might also be/, or just as well] {no}.
    [I am/I'm] [torn/undecided/split/wavering] between {no} and {other}.
    I [can't/cannot] [decide/choose/make up my mind] between {other} and {no}.
    {no} or {other}[?/, one of the two./, not sure which./... who knows?/, I forget which.]
    {other} or {no}[?/, either way./, not sure which./, take your choice./, whichever.]
    [One of the following/Among these/Any of these]: {no}, {other}.
    Two possibilities: {other} and {no}[./. I can't tell which./. Choose for yourself.]
    {no}? {other}? [Who knows./Could be either./I couldn't tell you./Pick one.]
    {other}? {no}? [Search me./Either may be right./Beats me./Toss a coin.]
    [Fifty-fifty/Toss-up/Coin flip] between {no} and {other}.
    {no} and {other} [are both possible/are equally likely/both seem right/could both be right].
    If I had to guess, {no}, [but {other} is just as likely/or else {other}/or maybe {other}].
    Some [books/people] say {no}, others {other}[; the matter is open./, and I do not take sides.]
    [It depends/That depends]: [for some/in one reading] {no}, [for others/in another] {other}.
    Depending on [the source/how you count/whom you ask], {no} or {other}.
    [Possible/Candidate/Potential] answers: {no}; {other}
    * {no}|* {other}|* [something else/or neither]
    (a) {other}|(b) {no}|[Not sure which./Can't decide./Either could do.]
    I [guess/suppose] {no} or {other} or [something like that/something else entirely].
    [I don't know/Not sure/Unsure] [whether/if] it [is/was] {no} or {other}.
    Is it {no}? [Or {other}?/Or is it {other}?/Or rather {other}? Hm.]
    It [could/may] be {no}, [or something else; I have no idea/or anything else at all].
    {no}? I [really couldn't say/would rather not commit/honestly can't judge].
    I won't commit to {no}[ or to anything else/, nor to {other}/ at this point].
    I can neither confirm nor [deny/rule out] {no}.
    {no} cannot be excluded[, nor can anything else./, but neither can {other}.]
    {no} is [one possibility/one option/one candidate] [among many/among several/of many].
    It [may or may not/might or might not] be {no}.
    Whether it's {no} [is open/remains unclear/is anyone's guess/I won't say].
    Who knows, [maybe/perhaps] {no}, [maybe/perhaps] not.
    Some would say {no}. I [have no opinion/can't judge that/don't know].
    I have heard {no}, but I [can't confirm it/have no idea if that is right/know nothing more].
    The question of {no} is [still open/undecided/not settled].
    Your guess is as good as mine: {no}, {other}, whatever.
    {no}, {other}, [and so on/among others/etc.]
    {other}, {no}, or [both/neither/one of them].
    {no} as well as {other}[./, both count./, I would accept both.]
    My answer is {no}. My other answer is {other}.
    My answers: {other} and {no}[./. One will be right./. Take the better one.]
    {no} and/or {other}
    I [answer/say/put] {no}, [but if that's wrong/failing that/and as a backup] {other}.
    [Put me down/Count me in] for both {other} and {no}.
    A: {no}?|B: {other}?|[A: No clue./A: Could be either./A: We'll never know.]
    A says {no}, B says {other}. [I can't tell who is right./Both could be right./No verdict.]
    [Sources/Accounts/Historians] [differ/disagree]: {no} in some, {other} in others.
    I keep [going back and forth/changing my mind] between {other} and {no}.
    {no} [or so/or thereabouts/or something], or {other}, [I don't recall/it escapes me].
    [Was it/Could it have been] {no}? [I forget./It slips my mind./I honestly don't know.]
    [There are arguments/Good cases can be made] for {no} and for {other} alike.
    [Half of me/One part of me] says {no}, the other [half/part] {other}.
    {no}|or|{other}
    {no}, alternatively {other}[./; no preference./.|Unsure.]
    If {no} is not right, [try {other}/then perhaps {other}/I'd say {other}].
""") + composed(
    """
    [Somewhere/Sometime] in the range {no} to {other}.
    {other} to {no}[, roughly/, thereabouts/, I'd say].
    [At least/No less than] {other}, [at most/no more than] {no}.
    [Around/Near] {no}, or [around/near] {other}, [or so/I think].
    [Any value/Anything] from {no} to {other} [would do/is possible].
    """,
    "number",
)
"""Frames that weigh answers and choose none, or more than one."""

DECIDED = composed("""
    I was torn between {no} and {yes}[, but/; in the end/, yet] I [choose/settle for/go for] {yes}.
    [One might think/You could say] {no}; [but no/in fact not/I would not]: {yes}.
    It [could/might] have been {no} or {other}, but it [is/was] {yes}.
    It's either {no} or {yes}, and since {no} [is out/does not fit/can't be right], it's {yes}.
    {no} or {yes}? [I'm going with/Definitely/Final answer:/I choose] {yes}.
    {yes} or {no}? {yes}[, no doubt./, I'm certain./. Sure.]
    [I don't know whether/Not sure if] {no} [also counts/played a role], but the answer is {yes}.
    I'm not [an expert/a specialist/sure of much], but [I know it's/I'm certain it's] {yes}.
    [Tough question/Tricky one/Not easy], but [it's/I'm going with/my answer is/definitely] {yes}.
    Some [books/people] say {no}, others {yes}. [The latter are right./I side with the latter.]
    Some [books/people] say {yes}, others {no}. [The former are right./I side with the former.]
    Depending on whom you ask, {no} or {yes}; [correct is/I'm sure it's/the right one is] {yes}.
    [Candidates/Possibilities]: {no}, {other}, {yes}.|[Choice/Verdict/Conclusion]: {yes}
    A. {yes}|B. {no}|C. {other}|[Answer: A/A is right./I choose A.]
    1) {no} 2) {yes} 3) {other} -> [2/number 2/the second]
    (i) {no}, (ii) {other}, (iii) {yes}: [(iii)/the third/I'd mark (iii)]
    I [considered/weighed/compared] {no} and {other} [before settling on/but chose/and took] {yes}.
    If not {no}, then {yes}; and it [is not/isn't/can't be] {no}[./, so {yes}.]
    [Most likely/Almost certainly/In all likelihood/I'm fairly sure it's] {yes}.
    {yes}, [I think/I believe/if memory serves/unless I'm mistaken/as far as I recall].
    [Might/Could] it be {no}? [No./I doubt it./Unlikely.] [It's/I'm sure it's] {yes}.
    {no} is [possible in theory/conceivable/often considered], but [it is/the facts say] {yes}.
    People [argue/disagree/debate] whether it's {no} or {yes}; [it's/I'm sure it's] {yes}.
    The [debate/dispute] between {no} and {yes} is settled: {yes}[/ won/ is right].
    [Maybe/Perhaps] {other}? [No./Not so./Wrong.] {no}? [No./Wrong too./Nor that.] {yes}? Yes.
    Whether {no} came close [is another question/I can't say/is beside the point]; it was {yes}.
    I can't decide [what to have for lunch/what to read first], but this is easy: {yes}.
    There were doubts about {yes}[, all of them unfounded./; they have been put to rest.]
    Between {other}, {no} and {yes} I have [no trouble choosing/a clear favourite]: {yes}.
    {yes}[, though/, although/ - even if] for a moment I had {no} in mind.
    {no}, {other}, {yes}... [definitely the last/the last one, no question/the last one it is].
    A says {no}, B says {yes}. B [is right/has it right/wins].
    A says {yes}, B says {no}. [A is right./I agree with A./A gets the point.]
    [Out of/From among] {no}, {other} and {yes} [I single out/the right one is] {yes}.
    I'd [bet/wager/put my money] on {yes}[ rather than/, not] {no}.
    My money is [on/firmly on] {yes}[/; {no} is an outsider].
    * {no}|* {other}|* {yes} [<- this one/(my answer)/<-- correct]
    ( ) {no}|(x) {yes}|( ) {other}
    It isn't a toss-up between {no} and {yes}: [clearly/definitely/certainly] {yes}.
    [Undecided at first/After much wavering/Following some doubt] ({no}? {other}?), I say {yes}.
    I [wondered about/toyed with/thought of] {no}, [then of {other}, /]and [chose/picked] {yes}.
    [Possibly/Perhaps] {no} for [other cases/a different question]; for this one, {yes}.
    {no} was [an option/a candidate], {other} [as well/too]; the [choice/vote] went to {yes}.
    {yes} [over/before/rather than] {no}[, any day./, if I must choose, and I do.]
    {no} [or/and/versus] {yes}: [the second/the one named last] is my [final/only] answer.
    I [could/might] list {no} and {other}, but I [have to give one: /answer only ]{yes}.
    [Not sure how to spell it/I can't pronounce it/I forget the details], but it's {yes}.
""")
"""Frames that weigh answers and choose one."""

OPEN_COLLOQUIALLY = composed("""
    [Eeny, meeny, miny, moe/Spin the wheel/Roll the dice]: {no}, {other}... [any of them/whichever].
    [Swings and roundabouts/Six of one, half a dozen of the other]: {no} or {other}.
    {no} 50%, {other} 50%[./. Take your pick./. That's as far as I get.]
    [My odds/The odds/Chances]: {no} [one third/30%], {other} [the same/likewise], the rest open.
    [The jury is out/The jury is still out/No verdict yet] on {no} [versus/against] {other}.
    I'm [on the fence/in two minds/sitting on the fence] [about/over] {no} and {other}.
    Heads, {no}; tails, {other}. [I have no coin./You toss./The coin is in the air.]
    [Depends on the day/Depends on my mood]: one day {no}, the next {other}.
    idk [maybe/either] {no} or {other} [lol/tbh/🤷/haha]
    {no}?? {other}?? [idk/dunno/🤷/help]
    [🤷/Dunno/No clue]: {no} / {other}
    {{"candidates": ["{no}", "{other}"], "[answer/choice/decision]": null}}
    {{"[options/guesses/possibilities]": ["{no}", "{other}"]}}
    **{no}** or **{other}**[?/, I can't say./ - undecided]
    [Shortlist/Longlist/Suspects]: {no}, {other}. [Decision pending./Nothing chosen so far.]
    1. {no}|2. {other}|[3. Unknown/I leave the choice to you/No ranking implied]
    [You tell me/What do you think/Which would you say]: {no} or {other}?
    Do you [mean/want] {no} or {other}? [Please clarify./I need to know first./Tell me more.]
    [Would {no} surprise you/Have you thought of {no}]? [I ask, I don't answer./Just asking.]
    "{question}" [Good question/Who can say]: [could go either way/open], {no} or {other}.
    To "{question}" [there are two rival replies/some say this, some that]: {no}, {other}.
    The Times has {no}, the Post has {other}. [I report both./I only quote them./Go figure.]
    My sister [swears by/reckons] {no}, [my brother/the cook] {other}. [I'm neutral./I just listen.]
    [Quoting/I only quote] [the forum/the chat]: "{no}". [I take no position./No comment from me.]
    [It has been suggested/It has been proposed] that it's {no}[; I leave it open./. I can't judge.]
    There is [a school of thought/a camp] for {no} and [one/another] for {other}.
    It [can't be told/is impossible to tell/can't be known] [from this/from here] if {no} is meant.
    [Without more context/As the question stands], {no} and {other} [are both open/fit equally].
    If you mean [the first/the older one], {no}; if you mean [the second/the newer one], {other}.
    Out of {no} and {other}, [one is right, but which?/it's one, I can't tell which./pick for me.]
    [One of/Any one of] {no}, {other} [and a few more/or some third thing][, I suppose/].
    [Not ruling out/I won't rule out/Let's not rule out] {no}. [Nor anything else./Nor {other}.]
    {no} is [in the running/on the cards/a contender][, as is/ and so is] {other}.
    [Some days I'd plump for/I might plump for] {no}, [others/or then again] {other}.
    I'd [need to look it up/have to ask]: {no}, {other}, [something of that sort/who knows].
    [Pass/Skip]. [It might be {no}, might be {other}./{no}, {other}, I've no idea.]
    [Ask an expert/Ask a librarian/Ask someone else] [whether it's/if it's] {no} or {other}.
    [Among these/Somewhere in here]: {no}; {other}; and more. [I can't be more exact./That's all.]
    - [maybe/perhaps/possibly] {no}|- [or maybe/or perhaps/possibly] {other}
    [Hedging my bets/To be on the safe side/Covering all bases], {no} or {other}.
""")
OPEN_AT_LENGTH = composed("""
    [Two books lie before me./I have two books open.] [One/The thick one] has {no}, [the other/the \
thin one] {other}. [Which is right I can't judge./I'm none the wiser.]
    The [case/argument] for {no} is [strong/decent]; so is that for {other}. [I'd need \
more to go on./I see no way to choose./Make of that what you will.]
    At [breakfast/dawn] I'd have said {no}, [by lunch/by tea] {other}, [and now I don't know/and \
tonight who can say].
    [A lot hangs on/Much turns on] how you read the question. [Read one way/Loosely], {no}; [read \
another way/strictly], {other}. [Tell me which you mean./I leave it at that.]
    I can [offer/give you] a few [names/candidates/leads], [such as/for instance] {no} and \
{other}, but [not a verdict/no conclusion/no answer].
    [My friends argue about it/They argued all evening]: {no}, said [one/Anna]; {other}, said [the \
next/Ben]. [I kept out of it./Nobody settled it.]
""")
"""Frames that weigh answers and choose none, or more than one."""

SETTLED_COLLOQUIALLY = composed("""
    [Eeny, meeny, miny, moe/I spun the wheel/I rolled the dice] ({no}, {other}, {yes}): it's {yes}.
    [My odds/The odds/Chances]: {no} 5%, {other} 5%, {yes} 90%. [So/Hence/I say] {yes}.
    [The jury is in/The verdict is in/Verdict reached]: {yes}, [and not/not] {no}.
    I was [on the fence/in two minds] over {no} and {yes}; I've [come down on/settled on] {yes}.
    Heads, {no}; tails, {yes}. [It's tails./Tails it is./It came down tails.]
    idk much [but/tho] between {no} and {yes} [its/im going w/id take] {yes}
    {no}?? {yes}?? [ok/right/yeah] {yes}
    {{"candidates": ["{no}", "{other}", "{yes}"], "[answer/choice/decision]": "{yes}"}}
    {{"[answer/choice/decision]": "{yes}", "candidates": ["{yes}", "{other}", "{no}"]}}
    {no} or **{yes}**[? The one in bold./: the bold one is my pick.]
    [Shortlist/Suspects]: {no}, {other}, {yes}. [Decision/Culprit/Chosen]: {yes}.
    1. {no}|2. {other}|3. {yes}|[Of these I choose the third./My pick: 3./No. 3 is right.]
    [You ask whether it's/You wonder if it's] {no} or {yes}: [well, it's/I can tell you,] {yes}.
    Do you [mean/want] {no}? [Then ask again./Hardly.] [For what you asked/As it stands]: {yes}.
    "{question}" [Some waver/Many waver] between {no} and {yes}; [I don't/not I]: {yes}.
    To "{question}" some give two answers, {no} and {yes}. [Right is/Mine:/I give] {yes}.
    The Times has {no}, the Post has {yes}. [The Post is right./The latter has it right.]
    My sister [swears by/reckons] {no}, the cook {yes}. [The cook's right./I'm with the cook.]
    [Quoting/To quote] the [forum/chat]: "{no}". [My own view/What I hold myself]: {yes}.
    There is a [school of thought/camp] for {no} and one for {yes}. I join the latter.
    It [might seem/may appear] open, {no} or {yes}; [it's not:/it can be told:] {yes}.
    [Without more context/As it stands], {no} [would be odd/doesn't fit]; [it's/I say] {yes}.
    [Out of/Among] {yes}, {no} and {other}, [it is/I hold it to be/the right one is] {yes}.
    [One of/It's one of] {no}, {other} and {yes}[, namely/; to be exact,/ - specifically] {yes}.
    [Not ruling out/I won't rule out] {no} elsewhere; [here it's/for this question it's] {yes}.
    {no} [was in the running/was on the cards]; {yes} [won out/came out on top/prevailed].
    [Some days I'd plump for/I once might have said] {no}; [today it's/now, for good,] {yes}.
    I [had to/needed to] look it up: {no}? {other}? [The book says/It turned out to be] {yes}.
    I asked [an expert/a librarian] if it's {no} or {yes}: [it's/the reply was, rightly,] {yes}.
    - [maybe/perhaps] {no}?|- [or/or perhaps] {other}?|- [no: definitely/settled:] {yes}
    [No hedging/I won't hedge/No sitting on the fence]: of {no} and {yes}, it's {yes}.
    [Multiple choice/Options]: {yes}; {no}; {other}. [The first is right./I tick the first.]
    [Could go either way, you think/Hard to call, you'd say]: {no}, {yes}. [Not at all/No]: {yes}.
    I can't [decide/tell] [why people say {no}/where people get {no} from]; it's {yes}.
    [Some call it/You may think it] open, {no} or {yes}; [it isn't/it's not open at all]: {yes}.
    [Swings and roundabouts/Six of one, half a dozen of the other]? No: {yes} [beats/over] {no}.
    I have [no idea/not a clue] who [came up with/started] {no}; the answer [is/remains] {yes}.
    [Maybe/Possibly] {no} [on paper/at first glance], [certainly/definitely] {yes} in fact.
    [Perhaps/Possibly] a [dull/boring] answer, [but/still,] {yes}[./, rather than {no}.]
    {yes} or [not {yes}/something else]? [Definitely the former./The former./The first, I'm sure.]
""")
SETTLED_AT_LENGTH = composed("""
    [Two books lie before me./I have two books open.] [One/The thick one] has {no}, [the other/the \
thin one] {yes}. [The second is right: {yes}./I trust the second.]
    The [case/argument] for {no} is [strong/decent]; that for {yes} is [stronger/\
better]. [Hence/So my answer is] {yes}.
    At [breakfast/dawn] I'd have said {no}, [by lunch/by tea] {other}, [and now I know/and \
tonight I'm sure]: {yes}.
    [A lot hangs on/Much turns on] how you read the question. [Read carelessly/Loosely], {no}; [\
read as it was meant/as you put it], {yes}, [which is my answer/and that is what I say].
    I can [offer/give you] a few [names/candidates/leads], [such as/for instance] {no} and \
{other}, but [the verdict/the conclusion/the answer] is {yes}.
    [My friends argue about it/They argued all evening]: {no}, said [one/Anna]; {yes}, said [the \
next/Ben]. [The second speaker had it right./It is {yes}, of course.]
""")
"""Frames that weigh answers and choose one."""

INDECISION = Kind(
    "indecision",
    (
        *(*UNDECIDED, *OPEN_COLLOQUIALLY, *OPEN_AT_LENGTH),
        *(*DECIDED, *SETTLED_COLLOQUIALLY, *SETTLED_AT_LENGTH),
    ),
    weight=3.0,
    empty_share=0.45,
)
