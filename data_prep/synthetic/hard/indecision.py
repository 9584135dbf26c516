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

INDECISION = Kind("indecision", (*UNDECIDED, *DECIDED), weight=3.0, empty_share=0.45)
