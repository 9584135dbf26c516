"""Frames about how answers relate to each other, and plain ones for look-alikes."""

from __future__ import annotations

from data_prep.synthetic.hard.frames import Kind, frames

NEAR_MISS = Kind(
    "near_miss",
    frames("""
    {yes}
    {yes}.
    It is {yes}.
    The answer is {yes}.
    That would be {yes}.
    Answer: {yes}
    As far as I know, {yes}.
    {yes}, if I remember correctly.
    I am confident that {yes} is right.
    I looked it up. It says {yes}.
    According to the encyclopedia: {yes}.
    It was {yes} all along.
    The one you are looking for is {yes}.
    Sources give {yes}.
    Easy: {yes}!
    **{yes}**
    The short version is {yes}, and the long version is the same.
    "{yes}"
    """),
    weight=3.0,
    near=True,
)

RELATION = Kind(
    "relation",
    (
        *frames("""
        {yes}, not to be confused with {no}.
        {yes}, which is often mixed up with {no}.
        {yes}, which should be told apart from {no}.
        {yes} (see also {no}).
        {yes}, formerly called {other}.
        {yes}, once known as {other}.
        {yes}, or {other} as it used to be called.
        What was {other} in the past is {yes} today.
        {yes}, listed right after {no}.
        {yes}, which came before {no}.
        {yes}, which came after {no}.
        {yes}, the counterpart of {no}.
        {yes}, as opposed to {no}.
        {yes}; a comparison with {no} is often made.
        {yes}, which took the place of {no}.
        The one that came after {no}.
        The one listed right before {no}.
        The opposite of {no}.
        The counterpart of {no}.
        What took the place of {no}.
        Something similar to {no}.
        An imitation of {no}.
        What people confuse with {no}.
        A forerunner of {no}.
        What replaced {no}.
        """),
        *frames(
            """
            {yes}, the rival of {no}.
            {yes}, who succeeded {no}.
            {yes}, named after {no}.
            {yes}, a relative of {no}.
            {yes}, a neighbour of {no}.
            {yes}, which owes much to {no}.
            {yes}, an admirer of {no}.
            {yes}, founded by {no}.
            The father of {no}.
            The successor of {no}.
            A rival of {no}.
            A neighbour of {no}.
            Somebody who worked for {no}.
            Somebody named after {no}.
            A pupil of {no}.
            The owner of {no}.
            The founder of {no}.
            A critic of {no}.
            """,
            subject="name",
        ),
        *frames(
            """
            {yes}, not far from {no}.
            {yes}, which differs from {no}.
            {yes}, where others count {no}.
            Rather close to {no}, but in fact {yes}.
            More than {no}.
            Less than {no}.
            Long before {no}.
            Some time after {no}.
            Between {no} and {other}.
            Anywhere from {other} to {no}.
            Not quite {no}.
            Just over {no}, I would think, but not {no} itself.
            """,
            subject="number",
        ),
    ),
    weight=2.0,
    empty_share=0.35,
)

RESTATED = Kind(
    "restated",
    frames("""
    {question} - {yes}
    {question}|{yes}
    You ask: {question}|My answer: {yes}
    The question "{question}" has an answer: {yes}.
    You want to know: {question} It is {yes}.
    To the question "{question}" I reply {yes}.
    Q: {question}|A: {yes}
    Regarding "{question}", the answer would be {yes}.
    {yes} is the answer to "{question}".
    Asked "{question}", one should say {yes}.
    Let me repeat: {question} So: {yes}.
    "{question}" - well, {yes}.
    {question}
    You ask: {question}
    The question was: {question}
    "{question}" is a good question.
    Let me repeat: {question}
    You want to know: {question} Let us look into that.
    To the question "{question}" there is an answer.
    Q: {question}|A:
    Regarding "{question}", the answer is well known.
    {question} {question}
    This is about the following. {question}
    Many people ask: {question}
    Good question! {question}
    The answer to "{question}" is the answer to "{question}".
    """),
    weight=1.5,
    empty_share=0.45,
)

DENIED_DE = """
Es war nicht {no}, sondern {yes}.
{no} ist falsch. Richtig ist {yes}.
Viele glauben, es sei {no}, aber es stimmt {yes}.
Erst dachte ich an {no}, aber die Antwort lautet {yes}.
{yes} und keinesfalls {no}.
Die Antwort lautet {yes}.
Ich bin sicher, dass {yes} gemeint ist.
Auf keinen Fall {no}.
Entweder {no} oder {other}.
Das kann ich leider nicht sagen.
"""
DENIED_FR = """
Ce n'est pas {no}, mais {yes}.
{no} est faux. La bonne réponse est {yes}.
Beaucoup pensent à {no}, pourtant il s'agit de {yes}.
J'ai d'abord pensé à {no}, mais la réponse est {yes}.
{yes}, et surtout pas {no}.
La réponse est {yes}.
Il s'agit sans aucun doute de {yes}.
Ce n'est certainement pas {no}.
Soit {no}, soit {other}.
Je ne peux pas le dire.
"""
DENIED_ES = """
No es {no}, sino {yes}.
{no} es falso. Lo correcto es {yes}.
Muchos creen que es {no}, pero se trata de {yes}.
Primero pensé en {no}, pero la respuesta es {yes}.
{yes}, y de ninguna manera {no}.
La respuesta es {yes}.
Sin duda se trata de {yes}.
De ninguna manera {no}.
O bien {no}, o bien {other}.
No sabría decirlo.
"""
DENIED_ZH = """
不是{no},而是{yes}。
{no}是错的,正确答案是{yes}。
很多人以为是{no},其实是{yes}。
我起初以为是{no},后来查证是{yes}。
是{yes},绝不是{no}。
答案是{yes}。
毫无疑问,应为{yes}。
与其说{no},不如说{yes}。
在{no}和{yes}之间,我选{yes}。
正确的说法是{yes},以前误作{no}。
绝对不是{no}。
说{no}的人都错了。
可能是{no},也可能是{other}。
要么{no},要么{other},说不准。
我不知道。
无法判断是不是{no}。
这个问题我回答不了。
"""

LANGUAGES = Kind(
    "languages",
    (
        *frames(DENIED_DE, "de"),
        *frames(DENIED_FR, "fr"),
        *frames(DENIED_ES, "es"),
        *frames(DENIED_ZH, "zh"),
    ),
    weight=1.5,
)

KINDS = (NEAR_MISS, RELATION, RESTATED, LANGUAGES)
