"""Revisions: an answer is given and then withdrawn, replaced, doubted or restored."""

from __future__ import annotations

from data_prep.synthetic.hard.frames import Kind, composed

WITHDRAWN_FIRST = composed("""
    [Initially/At first/Originally] I [said/put/answered] {no}[. However,/; but in fact] it's {yes}.
    {no}[. No,/. Oops,/ - no,/... no wait,/. Hang on,/. Ah, no,] {yes}.
    {no}. [Apologies/My bad/Pardon/My mistake], [I meant to say/that should be/make that] {yes}.
    {no}|*{yes}[/, typo/, oops/ (autocorrect)]
    ~~{no}~~ {yes}
    ~~{no}~~|{yes}
    {no}|[UPDATE/ETA/Erratum/Amendment]: [it's/should be/the right answer is] {yes}
    [Erratum/Corrigendum/Correction slip]: for {no}[, read/ read/ please read] {yes}.
    I [withdraw/retract] my [earlier answer/first reply], {no}. [It's/The answer is/Put] {yes}.
    I [was wrong/made a mistake/slipped up] when I said {no}: [it's/it should be] {yes}.
    My [first/original/previous] [answer/reply] was {no}; my [new/revised/corrected] one is {yes}.
    [After checking/On reflection/Upon review], I [change/revise] my answer from {no} to {yes}.
    I [change/am switching/have moved/correct myself] from {no} to {yes}.
    {no} [was/is] [a typo/a slip of the pen/a mix-up]; [read/I meant/it is] {yes}.
    [Delete/Erase/Disregard/Never mind] {no}; [put/write/it's] {yes}.
    I [nearly/almost] [said/wrote/answered] {no}. [Luckily I checked: it's/The answer is] {yes}.
    [Yesterday/Last week/In my last note] I [said/wrote] {no}. [That's wrong./I erred.] It's {yes}.
    [Attempt 1/Version 1/Try 1]: {no} (wrong)|[Attempt 2/Version 2/Try 2]: {yes} (right)
    [Old/Previous] answer: {no}. [New/Current] answer: {yes}.
    A: {no}.|B: [Are you sure?/Really?/Check again.]|A: [Right, sorry./You're right./Oh, no.] {yes}.
    Me: {no}|Me [after checking/five minutes later]: no, {yes}
    I [assumed/was sure] it was {no} [until/till] I [checked/asked an expert]; it's {yes}.
    [I stand corrected/Let me fix that]: {yes}, [instead of/rather than] {no}.
    I was corrected. {no} [was/is] [wrong/false], {yes} is [right/correct].
    {no}... [hmm/um/er/actually], [that's not right/let me rethink]... {yes}.
    {no}, [I mean/or rather/no, sorry,/beg pardon,] {yes}.
    Not sure why I [wrote/said/put] {no}. It's {yes}[./, of course.]
    [Please change/Could you change] my answer to {yes}[; I had put {no}./, {no} was a slip.]
    {no} [used to be/was] my answer; now [I say/I'd say/it is] {yes}.
    [My mind has changed/I have rethought this]: [no longer/not] {no} but {yes}.
    I've [changed my mind/thought again/had a rethink]. [Not/No longer] {no}. {yes}.
    [First pass/Sketch]: {no}. [Check/Test]: [that fails/wrong]. [Result/Conclusion]: {yes}.
    <thinking>[Probably/I guess] {no}. [Wait, no/That's wrong].</thinking>|{yes}
    Thought: {no}. Check: [fails/does not work/false]. Answer: {yes}.
    [Typo/Slip/Error] in my last message: [not/instead of] {no}, [it should say/I meant] {yes}.
    {no}? I [thought so at first/believed that for years]. [Wrong!/Not so./But no.] {yes}.
    [We printed/This page said/An earlier version said] {no}. The [correct/right] answer is {yes}.
    I had {no} down, [crossed it out/rubbed it out/struck it], and wrote {yes}.
    {no} was [too hasty/a quick guess/off the top of my head]; [with care/once checked], it's {yes}.
    Answer: {no}. [Recheck/Review/Second look]: [wrong/error found]. Answer: {yes}.
    [So it's {no}/That gives {no}]. [Let me verify/Checking]... [it fails/that's off]. It's {yes}.
    [Silly me/How embarrassing/Oh dear], I [wrote/said] {no}. [Of course it is/It's] {yes}.
    [Replacing/I am replacing] {no} [with/by] {yes}[/ in my answer above].
    [Forgive/Excuse/Pardon] the {no}[, it's/; it's/. It is] {yes}.
    The first line of this reply [was/read] {no}. It [should be/must read/now reads] {yes}.
""")

WITHDRAWN_LAST = composed("""
    {yes}. [Earlier/Before that/Previously] I had [written/put] {no}[, wrongly./, a mistake.]
    {yes} ([not {no} as I first wrote/corrected from {no}/I first had {no}, which is wrong]).
    {yes} - [ignore/scrap/forget] [my earlier/the previous] [answer/guess] of {no}.
    [New/Current/Revised] answer: {yes}. [Old/Previous] answer: {no}.
    It [turns out/turned out] that it's {yes}, [not {no} as I thought/though I had thought {no}].
    [EDIT/Edited]: {yes}[, not {no}./ instead of {no}./. {no} was wrong.]
    {yes} [replaces/supersedes] my [first/earlier] answer, {no}.
    {yes} ~~{no}~~
    {yes}|(was: ~~{no}~~)
    My answer is {yes}[; when I said {no} I was mistaken/, which corrects the {no} above].
    {yes}, and I [apologise for/am sorry about/take full blame for] [saying/writing] {no} before.
    [Correct/Right]: {yes}. [What I said before/My earlier line]: {no}. [Disregard it./It's void.]
    I have [now/since] [settled on/come round to] {yes}, [having begun with/after] {no}.
""")

RESTORED = composed("""
    {yes}. [No, wait, {no}./Or is it {no}?/Hmm, {no}?] [No, {yes} after all./Back to {yes}.]
    I [changed/switched] from {yes} to {no} and back. [So/My last word]: {yes}.
    I was going to change {yes} to {no}, but [I keep/I'll stay with/I stick to] {yes}.
    My first [answer/instinct] was {yes}, then I [thought of/leaned to] {no}. The first was right.
    {yes}. [Somebody/A friend] told me to change it to {no}[. I won't./, but I refuse./; I decline.]
    [Correction to my correction/Second correction]: {yes}, [not/and not] {no}.
    I first said {yes}, was talked into {no}, and [now return/am going back] to {yes}.
    {yes}. [I nearly changed this to/I was tempted to swap it for] {no}, [wrongly/which is false].
    A: {yes}.|B: [Not {no}?/I'd have said {no}./Surely {no}?]|A: [No, {yes}./I'm sure: {yes}.]
    [I withdraw my withdrawal/I take my correction back]: {yes} was right[./, not {no}.]
    EDIT: {no}|[EDIT 2/Second edit]: [the first edit was wrong, it's/undone, it's] {yes}
    [Doubted it/Had doubts/Was unsure] for a moment because of {no}. [No need/No reason]: {yes}.
""")

WITHDRAWN = composed("""
    {no}. [No, that is wrong./Sorry, that's not right./Wait, that can't be right./Hang on, no.]
    I [said/wrote/answered] {no}. [I take it back./I withdraw that./Please ignore that.]
    ~~{no}~~
    ~~{no}~~ [(deleted)/(struck)/(wrong)/(withdrawn)]
    I [withdraw/retract/revoke] {no}[./ and have no other answer./ without a replacement.]
    My [earlier/first/previous] answer, {no}, [was wrong/is withdrawn/should be ignored].
    {no}|[EDIT/UPDATE]: [that's wrong/please disregard/deleted/not true after all]
    I [thought/believed/was sure] it was {no} until I [checked/looked it up/asked around].
    I was going to say {no}, but [that's not it/I've changed my mind/it's wrong].
    {no}... no. [I'd have to look it up./I give up./Forget it./Skip this one.]
    A: {no}|B: [Are you sure?/Really?]|A: [No./Now I doubt it./I don't think so any more.]
    [Old/Earlier] answer: {no}. [New/Current] answer: [none/to be decided/left blank].
    [Scrap/Cancel/Undo/Void] {no}.
    First {no}, then {other}, now [neither/I have nothing/I'm out of ideas].
    I no longer [think/believe/hold/maintain] that it is {no}.
    [I've changed my mind about/I am dropping/I am giving up on] {no}.
    I [crossed out/rubbed out/struck/deleted] {no} and left the [line/box] empty.
    <thinking>{no}</thinking>|[I don't have an answer./No idea./Pass.]
    {no} [was/is] a [typo/slip/mistake] on my part[./; please wait for my answer.]
    [Result/Sketch]: {no}. [Check/Test]: [fails/wrong]. [No result./Start again./To be redone.]
    [Yesterday/This morning] I [told you/wrote] {no}. That was [wrong/an error/mistaken].
    {no}, [I said/I wrote]; [how wrong I was/what a mistake/I regret the error].
    [An earlier version of this page/The first edition] [said/gave] {no}. [It was wrong./We erred.]
    {no}|[deleted by author]
    It was {no}, or so I [thought/claimed/wrote]. [Not so./It was not./I was wrong.]
    [Sorry/Apologies] for [writing/saying] {no}[./, which is wrong./. Not true.]
    Me: {no}|Me [after checking/an hour later]: [no/that's wrong/nope, not that]
""")

SWITCHED_COLLOQUIALLY = composed("""
    [Lock in/Put me down for] {no}. [Hold on/Hold your horses]! [Make it/Change to] {yes}.
    I'd [plump for/bet on] {no}. [Well, I would have/Or I did once], [now it's/these days] {yes}.
    {no}... [rewind/backspace/delete that], {yes}.
    {no} [lol jk/haha kidding/nah im joking], its {yes}
    {no}|[wait sorry/omg no/oops wrong one/argh]|{yes}
    {no}. [Let me rephrase/Let me start over/Take two/Do-over]: {yes}.
    [My tongue slipped/My fingers slipped/Brain fog]: I put {no} [where I meant/when I meant] {yes}.
    **{no}**|[*Correction*/*Edited*/*Fixed*]: **{yes}**
    {{"answer": "{no}", "[corrected_answer/revised_answer/final_answer]": "{yes}"}}
    {{"[first_draft/initial_guess]": "{no}", "[final/settled]": "{yes}"}}
    [Draft/Version 0.1]: {no}|[Final/Version 1.0]: {yes}
    - {no} [(crossed out)/(withdrawn)/(void)]|- {yes} [(stands)/(kept)/(valid)]
    [Earlier/First/10:02]: {no}|[Update/Later/10:05]: [sorry, it's/I now know it's] {yes}
    "{question}" [I blurted out/I shouted] {no}, [winced/blushed] and [corrected it to/said] {yes}.
    My [pen/hand] had [written/put] {no} [before I knew it/already]; I changed it to {yes}.
    [In round one/In the first half] I [went for/said] {no}; [in the final/at the end] I say {yes}.
    [I take back/I eat my words on/I disown] {no}. [Enter/Note/File] {yes} [instead/in its stead].
    [Scoring note/Note to the marker]: [please ignore/strike] {no} above. My answer: {yes}.
    Until [just now/this minute] I'd have bet on {no}. [A quick look says/Fact check:] {yes}.
    A: {no}!|B: [Hmm?/You sure?/Come again?]|A: [Er, I meant/I mean/Fine,] {yes}.
    I [had it wrong/was off] with {no}[: / - ]{yes} [is it/it is].
    [The draft/My first mail] had {no}. [Please find attached the right one/Now corrected]: {yes}.
    {yes}. [The/That] {no} [in my first mail/a moment ago/up there] was a [brain freeze/misprint].
    {yes} [(first draft: {no})/(struck: {no})/(I had {no} before the check)]
    {{"[final/settled]": "{yes}", "[first_draft/initial_guess]": "{no}"}}
    [Final/Version 1.0]: {yes}|[Draft/Version 0.1]: {no}
    {yes}[; before lunch I'd put/, where at first I had] {no}[. Silly me./, a blunder.]
    {yes}. [You may have seen/You'll still find] {no} in my [draft/first mail]; [bin/ignore] it.
    {yes}... or {no}? [Nah/Rubbish/Get a grip]: {yes}.
    [Lock in/Put me down for] {yes}. [Change to/Or make it] {no}? [Nope, staying put./No, I stick.]
    {yes}. A [little voice/devil on my shoulder] [whispers/says] {no}. [I ignore it./Hush.] {yes}.
    {yes}|[wait, {no}?/hm, {no}?/hold on, {no}??]|[no, first one/nah I was right/no, as you were]
    I [put/wrote] {yes}, [rubbed it out for/swapped it for] {no}, and [put/wrote] {yes} back.
    I [had it right/was on the money] with {yes}; [changing it/my later edit] to {no} was an error.
    I first [said/put] {no}, then {other}; [third time lucky/my last word]: {yes}.
    I [struck/crossed out] {no}, then {other}, [which left/and let stand] {yes}.
""")
"""Frames that withdraw one answer for another, or return to it."""

DROPPED_COLLOQUIALLY = composed("""
    {no}... [rewind/backspace/delete that].
    {no} [lol jk/haha kidding/nah im joking, its not/- just joking, it isn't]
    {no}|[wait sorry no/omg no thats wrong/oops not that/argh no]
    [Lock in/Put me down for] {no}. [Hold on, don't!/Stop, I take that back./No, cancel that.]
    {no}. [Let me start over./Do-over, please./Take two to follow.] That was [wrong/rubbish].
    **{no}**|[*Correction*/*Edited*/*Note*]: [the above is wrong/retracted/does not stand]
    {{"answer": null, "[withdrawn_answer/retracted/struck]": "{no}"}}
    {{"answer": "{no}", "[withdrawn/retracted/void]": true}}
    [Draft/Version 0.1]: {no}|[Final/Version 1.0]: [still empty/to follow/not yet written]
    - {no} [(crossed out)/(withdrawn)/(void)]|- {other} [(crossed out)/(withdrawn)/(void)]
    [Earlier/First/10:02]: {no}|[Update/Later/10:05]: [sorry, that was wrong/forget what I said]
    [I take back/I eat my words on/I disown] {no}[./, and leave it there./, and pass.]
    [Scoring note/Note to the marker]: [please ignore/strike] {no} above. [I leave it blank./Void.]
    Until [just now/this minute] I'd have bet on {no}. [A quick look says no./Now I would not.]
    "{question}" [I blurted out/I shouted] {no}, [winced/blushed] and [took it back/said sorry: no].
    I [had it wrong/was off] with {no}[, and I'm stumped./. No more tries left./, it seems.]
    [The draft/My first mail] had {no}. [That line is void./Bin that line./It was an error.]
    A: {no}!|B: [Hmm?/You sure?/Come again?]|A: [Er, no./Fine, not that./I take it back.]
    I first [said/put] {no}, then {other}; [I retract both/both were wrong/neither stands].
    {no} [was/is] the answer I gave [in round one/before lunch]. [I was mistaken./It's off.]
    I [struck/crossed out] {no}, then {other}, and [ran out of time/handed in a blank].
    [My tongue slipped/My fingers slipped/Brain fog] when I put {no}. It's [not that/wrong].
    I [toyed with/leaned towards/was all for] {no} [until reason prevailed/and then saw it's wrong].
    [It was going to be/I had it all set as] {no}. [Then I checked: wrong./Then I saw it can't be.]
""")
"""Frames that withdraw an answer and leave nothing in its place."""

REVISION = Kind(
    "revision",
    (
        *(*WITHDRAWN_FIRST, *WITHDRAWN_LAST, *RESTORED, *SWITCHED_COLLOQUIALLY),
        *(*WITHDRAWN, *DROPPED_COLLOQUIALLY),
    ),
    weight=3.0,
    empty_share=0.25,
)
