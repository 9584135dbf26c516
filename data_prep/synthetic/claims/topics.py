"""Topics: the invented things that claims are about."""

from __future__ import annotations

from data_prep.synthetic.claims.facets import (
    ADVANTAGE_SENTENCES,
    PURPOSE_SENTENCES,
    WEAKNESS_SENTENCES,
    Topic,
    facet,
)

PROTOCOL = Topic(
    "the {w} protocol",
    (
        facet(
            "what it is used for",
            """
            to share one channel among many stations / to let several stations use a single channel
            to find the cheapest path through a network / to look for the route with the least cost
            to hand out addresses to new hosts / to give every new machine an address
            to keep fast senders from flooding slow receivers / to slow senders down where needed
            to detect errors in frames / to notice when bits of a frame were changed
            to keep a copy of names close to the user / to store names near those who ask for them
            """,
            PURPOSE_SENTENCES,
        ),
        facet(
            "what happens when a packet is lost",
            """
            the sender repeats it after a timeout / it is sent again once a timer runs out
            nothing is done about it / it is simply given up
            the receiver asks for it again / the receiver requests a new copy
            it is rebuilt from redundant data / the missing bits are recovered from extra packets
            the connection is closed / both sides drop the connection
            """,
            """
            When a packet is lost, {v}.
            If a packet does not arrive, {v}.
            After a loss, {v}.
            As for lost packets: {v}.
            In case of a missing packet, {v}.
            A packet goes missing? Then {v}.
            Losses are handled as follows: {v}.
            """,
        ),
        facet(
            "who decides which station may send",
            """
            a central controller / one master station
            whoever holds the token / the station that has the token
            every station for itself at random / each node alone, by chance
            a fixed table of time slots / a schedule that was set in advance
            the station with the lowest number / the one with the smallest address
            """,
            """
            The right to send is decided by {v}.
            It is {v} that decides who may send.
            Who may transmit is up to {v}.
            Sending is controlled by {v}.
            Access lies in the hands of {v}.
            The decision about the next sender belongs to {v}.
            The next sender is chosen by {v}.
            """,
        ),
        facet(
            "one advantage",
            """
            it needs no configuration / nobody has to set anything up
            collisions cannot occur / two stations never get in each other's way
            it works with very little memory / hardly any memory is needed
            it adapts quickly to changes / it reacts fast when something changes
            the delay has an upper limit / no message waits longer than a known time
            """,
            ADVANTAGE_SENTENCES,
        ),
        facet(
            "one disadvantage",
            """
            much bandwidth is wasted on control messages / its own messages eat up bandwidth
            a single failure stops everything / it has one point whose failure halts the whole
            it does not scale to large networks / it breaks down when there are many nodes
            messages can be read by strangers / it offers no protection against listeners
            it needs exact clocks / it only works if all clocks agree
            """,
            WEAKNESS_SENTENCES,
        ),
    ),
)

MACHINE = Topic(
    "the {w} engine",
    (
        facet(
            "what it is built for",
            """
            to pump water out of mines / to lift water from below the ground
            to saw timber / to cut logs into boards
            to press oil from seeds / to squeeze seeds until oil comes out
            to spin wool into yarn / to turn raw wool into thread
            to print on cloth / to put patterns on fabric
            """,
            PURPOSE_SENTENCES,
        ),
        facet(
            "what drives it",
            """
            a water wheel / a wheel turned by a stream
            compressed air / air under pressure
            a falling weight / a weight that sinks slowly
            burning peat / the heat of a peat fire
            two oxen / a pair of oxen
            """,
            """
            {s} is driven by {v}.
            Its power comes from {v}.
            What keeps it moving is {v}.
            {v} supplies the energy.
            The force is provided by {v}.
            It draws its power from {v}.
            {s} runs on {v}.
            """,
        ),
        facet(
            "how it is kept from running too fast",
            """
            by a brake of leather / with a leather band that slows it
            by spinning balls that close a valve / through rotating weights which shut a valve
            by hand / through a worker who pulls a lever
            by a long pendulum / with a pendulum that sets the beat
            by a bath of oil / through oil that resists the motion
            """,
            """
            Its speed is limited {v}.
            It is kept from running too fast {v}.
            The speed is held down {v}.
            {s} is slowed {v}.
            Too high a speed is prevented {v}.
            It never gets out of control, as it is checked {v}.
            Control of the speed is achieved {v}.
            """,
        ),
        facet(
            "one advantage",
            """
            spare parts are cheap / broken parts cost little to replace
            it makes no noise / one hardly hears it
            it can be moved by two people / two persons are enough to carry it
            it runs for weeks without care / nobody has to look after it for weeks
            it starts at once / there is no waiting before it runs
            """,
            ADVANTAGE_SENTENCES,
        ),
        facet(
            "one disadvantage",
            """
            it stops in winter / it cannot run when it is frozen
            it takes up a whole building / it is as large as a house
            its parts wear out quickly / its parts do not last long
            it pollutes the river / the river is made dirty by it
            only experts can repair it / a specialist is needed for every repair
            """,
            WEAKNESS_SENTENCES,
        ),
    ),
)

ANIMAL = Topic(
    "the {w} beetle",
    (
        facet(
            "what it eats",
            """
            rotting wood / dead wood
            the leaves of birches / birch leaves
            snails / small snails with and without shells
            pollen / the dust of flowers
            the eggs of ants / eggs that it takes from ants
            """,
            """
            {s} eats {v}.
            Its food is {v}.
            It feeds on {v}.
            It lives on {v}.
            The diet of {s} consists of {v}.
            On its menu stands one thing: {v}.
            What it needs as food is {v}.
            """,
        ),
        facet(
            "how it avoids its enemies",
            """
            by playing dead / by lying still as if it had died
            by giving off a bad smell / with a stink that drives others away
            by looking like a wasp / through its likeness to a wasp
            by digging itself in / with a quick escape into the soil
            by a loud click / with a noise that startles others
            """,
            """
            It avoids its enemies {v}.
            {s} protects itself {v}.
            It gets away from hunters {v}.
            It survives attacks {v}.
            Against enemies it defends itself {v}.
            When in danger it saves itself {v}.
            It escapes being eaten {v}.
            """,
        ),
        facet(
            "where it spends the winter",
            """
            under bark / beneath the bark of trees
            in the mud of ponds / at the muddy bottom of ponds
            in houses / inside buildings where people live
            deep in the soil / far down in the ground
            in the nests of mice / in homes that mice have dug
            """,
            """
            It spends the winter {v}.
            In winter, {s} is found {v}.
            The cold months are spent {v}.
            It waits for spring {v}.
            From November on it stays {v}.
            Winter is passed {v}.
            Its winter quarters lie {v}.
            """,
        ),
        facet(
            "why it has become rare",
            """
            because old forests were cut down / since hardly any old trees are left
            because of street lights / since lamps at night lead it astray
            because a fungus kills its larvae / since its young die of a fungus
            because meadows are mown too early / since the grass is cut too soon in the year
            because collectors took too many / since too many of them ended in collections
            """,
            """
            It has become rare {v}.
            There are few of them today {v}.
            {s} is threatened {v}.
            Its numbers fell {v}.
            It is hardly seen any more {v}.
            The decline came about {v}.
            One seldom meets it now {v}.
            """,
        ),
    ),
)

LAW = Topic(
    "the {w} Act",
    (
        facet(
            "what it regulates",
            """
            how land is passed on to heirs / the way in which land is inherited
            who may fish in the lakes / the right to catch fish in lakes
            how long shops may open / the opening hours of shops
            who pays for repairs of roads / the payment for mending roads
            how houses are insured / the insurance of houses
            """,
            """
            {s} regulates {v}.
            Its subject is {v}.
            It lays down {v}.
            What it deals with is {v}.
            It is about {v}.
            {s} sets rules for one thing, namely {v}.
            The law governs {v}.
            """,
        ),
        facet(
            "why it was passed",
            """
            after a great fire / because a fire had destroyed much
            because two towns had quarrelled / after a dispute between two towns
            to please the merchants / because merchants had asked for it
            because the treasury was empty / since the state had run out of money
            after a court had struck down the old one / because judges had stopped its forerunner
            """,
            """
            It was passed {v}.
            {s} came into being {v}.
            Parliament voted for it {v}.
            It was introduced {v}.
            The reason for it: it was made {v}.
            The members agreed to it {v}.
            One adopted it {v}.
            """,
        ),
        facet(
            "who enforces it",
            """
            the mayors / the heads of the towns
            a council of five / five elected members of a council
            the harbour police / police officers of the port
            the tax office / those who collect the taxes
            volunteers / citizens who are not paid for it
            """,
            """
            It is enforced by {v}.
            Its observance is watched over by {v}.
            Those who enforce it are {v}.
            The task of enforcing it falls to {v}.
            {s} is put into practice by {v}.
            Breaches are followed up by {v}.
            Responsible for it are {v}.
            """,
        ),
        facet(
            "what the penalty is",
            """
            a fine / a sum of money to be paid
            the loss of the licence / having one's licence taken away
            a day of work for the town / working for the town for one day
            a public apology / having to say sorry in public
            a week in prison / seven days behind bars
            """,
            """
            The penalty is {v}.
            Whoever breaks it faces {v}.
            Breaking it leads to {v}.
            The punishment consists of {v}.
            Those who ignore {s} must expect {v}.
            A breach is punished with {v}.
            It threatens offenders with {v}.
            """,
        ),
        facet(
            "what critics object to",
            """
            it favours the rich / it helps those who have money
            it is too vague / its wording leaves too much open
            nobody checks whether it is kept / there are no controls
            it is out of date / it no longer fits the times
            it costs too much to carry out / carrying it out is too expensive
            """,
            WEAKNESS_SENTENCES,
        ),
    ),
)

TOPICS = (PROTOCOL, MACHINE, ANIMAL, LAW)
