"""Frames in which one answer is claimed and another rejected, taken back or weighed."""

from __future__ import annotations

from data_prep.synthetic.hard.frames import Kind, frames

DENIAL = Kind(
    "denial",
    frames("""
    {no} is mistaken; the fact is {yes}.
    The common reply here is {no}, which does not hold. What holds is {yes}.
    Contrary to what people think, {yes} and not {no}.
    It was never {no}; {yes} is what you want.
    People keep repeating {no}, but the records point to {yes}.
    You may have read {no} somewhere. That is an error: {yes}.
    {yes}, rather than {no}.
    {yes} and certainly not {no}.
    Rule out {no}. What remains is {yes}.
    {no} has been ruled out, so we are left with {yes}.
    Do not say {no} here, however tempting; {yes} fits.
    Although {no} is often given, the sources name {yes}.
    Instead of {no}, say {yes}.
    {no}? No. {yes}.
    While {no} sounds plausible, it does not fit, whereas {yes} does.
    There is no truth in {no}; it has always been {yes}.
    I would reject {no} and accept {yes}.
    {yes} - people who say {no} are wrong.
    {no} is a myth. Sources agree on {yes}.
    Unlike what the quiz book claims ({no}), it is {yes}.
    This is not about {no}, it is about {yes}.
    My teacher marked {no} as false and {yes} as true.
    False: {no}.|True: {yes}.
    It would be a mistake to name {no}. Name {yes}.
    not {no} but {yes}
    {yes}; not {no}, as is often believed.
    Many guess {no}. They are all off the mark, because {yes} is right.
    Forget {no}. {yes}!
    A widespread error is to think of {no}. One should think of {yes}.
    {no} has nothing to do with it. {yes} does.
    None other than {yes}.
    It cannot be anything but {yes}.
    Nothing except {yes} fits.
    There is no doubt that {yes} is meant.
    I could not name anything other than {yes}.
    No answer but {yes} survives a check.
    Do not doubt it, {yes} is right.
    You are not wrong if you say {yes}.
    It certainly was not {no}.
    {no} is false.
    Whoever says {no} is mistaken.
    I can rule out {no}, nothing more.
    Anything but {no}.
    {no} is what many would say, and they would be wrong.
    Definitely something other than {no}.
    The claim that it is {no} has been refuted.
    There is no evidence for {no}.
    {no} does not fit at all.
    It is not true that {no} is meant here.
    I doubt {no} very much.
    Neither {no} nor {other}.
    """),
    weight=3.0,
)

CORRECTION = Kind(
    "correction",
    frames("""
    First I wrote {no}, then I checked, and it is {yes}.
    {no}... wait, that is off. {yes}.
    Scratch {no}; my final answer is {yes}.
    I said {no} earlier. I take that back: {yes}.
    {no} - sorry, I meant {yes}.
    At first glance {no}, on closer reading {yes}.
    My initial guess of {no} does not survive a check. {yes} does.
    Draft: {no}.|Final: {yes}.
    Before: {no}|After correction: {yes}
    Let me correct myself. Where I had {no}, read {yes}.
    I used to believe it was {no}; now I know it is {yes}.
    It is {yes}. (An earlier version of this reply said {no}, which was a slip.)
    {yes}. I withdraw {no}.
    Strike {no} from my reply and put {yes}.
    Hmm, {no}? Thinking again, no: {yes}.
    Step 1 suggests {no}. Step 2 shows a slip in step 1. Result: {yes}.
    I started out with {no}. After reading more I ended up with {yes}.
    The answer is {no}. No, hold on. The answer is {yes}.
    Had you asked me yesterday, I would have said {no}. Today I say {yes}.
    Correction: {yes}, and not {no} as stated above.
    I was about to type {no}, but it has to be {yes}.
    My memory says {no}, my notes say {yes}, and I trust my notes.
    <think>It looks like {no}. But no, that was another case.</think>|{yes}
    {no}|Edit: {yes}, thanks to everyone who pointed out my error.
    First thought {no}, second thought {other}, last thought and answer {yes}.
    """),
    weight=2.0,
)

HEDGE = Kind(
    "hedge",
    frames("""
    Candidates are {no} and {yes}; of the two I choose {yes}.
    It is between {no}, {other} and {yes}. My pick is {yes}.
    Options like {no} or {other} come to mind, yet {yes} is the one.
    Some say {no}, some say {yes}. I go with {yes}.
    Perhaps {no}, perhaps {yes}? After weighing both: {yes}.
    It might be {no}, it might be {yes}; the evidence decides for {yes}.
    Possible answers: {no}, {yes}, {other}. Right answer: {yes}.
    - {no}|- {yes}|- {other}|The second one, {yes}.
    {yes} (out of {no}, {other} and {yes})
    One of {no}, {yes} or {other}, namely {yes}.
    I hesitated over {no} and {other}. I settled on {yes}.
    Maybe {no}, I thought, or {other}; but I am sure that {yes} is right.
    a) {no}|b) {other}|c) {yes}|I choose c.
    1. {yes}|2. {no}|3. {other}|Only the first holds.
    Of {other}, {yes} and {no}, the first and the last drop out.
    Either {no} or {yes}. Not {no}.
    Either {no} or {other}; I leave it open.
    It might be {other}, or it might be {no}.
    {other} or {no}
    {no}, {other}
    {other}, {no}
    - {other}|- {no}
    1. {no}|2. {other}|One of these.
    Possibly {no}, possibly {other}, I would not bet on either.
    Candidates are {other} and {no}; take your pick.
    Some say {no}, some say {other}. Both have a point.
    If it is not {other}, it is {no}.
    {no} / {other}
    {other} and {no} are both right.
    Perhaps {no}? Perhaps {other}?
    My pick is {no} and also {other}.
    I hesitate over {other} and {no}, and I cannot settle on one.
    Options like {other} or {no} come to mind.
    {no}; if that does not count, then {other}.
    """),
    weight=2.5,
    empty_share=0.45,
)

CANNOT_TELL = Kind(
    "cannot_tell",
    frames("""
    I cannot tell you much about the background, but it is {yes}.
    I do not know the details. What I do know: {yes}.
    I am not sure about the source, yet I am sure of {yes}.
    Hard to say why, but {yes}.
    No idea how it came about; {yes}, in any case.
    There is much that I cannot verify. {yes} I can.
    Without more context I would still say {yes}.
    I have no access to the records, and do not need them: {yes}.
    I cannot recall where I read it. {yes}.
    It is unclear to many people. It is clear to me: {yes}.
    As a language model I have no opinions, but this is a fact: {yes}.
    I do not know much about this, except that {yes} is right.
    Whether {no} played a part I cannot tell. The answer is {yes}.
    I cannot tell.
    I do not know.
    Hard to say.
    No idea, sorry.
    There is not enough information to decide.
    Without more context nobody could say.
    I have no access to the records.
    I am not sure about this one.
    I cannot tell whether it was {no}.
    It is unclear if {no} is right.
    I do not know if it was {no} or not.
    Could it be {no}? I have no way to verify that.
    As a language model I have no opinion on {no}.
    {no} is a possibility, but I am unable to confirm anything.
    Whether {no} is meant or {other}, I cannot tell.
    I would need more details before I could say {no}.
    Sources differ, and I do not know which of them to trust.
    I am unable to give an answer to this question.
    """),
    weight=1.5,
    empty_share=0.5,
)

QUOTED = Kind(
    "quoted",
    frames("""
    A reply that I often see is "{no}". It is false. {yes}
    "{no}" - this statement does not hold. {yes}
    Another model wrote: {no}|I disagree. {yes}
    {yes}|(Do not believe those who write: "{no}")
    My first draft read: "{no}" I have since found that to be wrong. {yes}
    User A: {no}|User B: That is wrong. {yes}|User B is right.
    Claim: {no}|Status: refuted|Replacement: {yes}
    It is a misconception that the following holds: "{no}" {yes}
    {yes}|What is not true: {no}
    Old entry (deleted): {no}|New entry: {yes}
    Nobody should write "{no}" any more. {yes}
    Rejected: "{no}"|Accepted: "{yes}"
    Some would answer: "{no}" They are mistaken.
    It is false to say: "{no}"
    The following is refuted: {no}
    "{no}" is not true.
    """),
    weight=1.5,
    whole_claims=True,
)

KINDS = (DENIAL, CORRECTION, HEDGE, CANNOT_TELL, QUOTED)
