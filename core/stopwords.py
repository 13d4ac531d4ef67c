"""Function words by Snowball language: articles, prepositions, conjunctions, pronouns, auxiliaries.

Short on purpose. The long lists in circulation hold content words ("state", "work", "new") that a
person searching documents means. The English list is Lucene's, the one published BM25 figures use.
"""

from __future__ import annotations

_LISTS = {
    "english": """a an and are as at be but by for if in into is it no not of on or such that the their
        then there these they this to was will with""",
    "german": """aber als am an auch auf aus bei bin bis bist da dann das dass dem den der des die dies
        diese dieser dieses du ein eine einem einen einer eines er es für hat haben ich ihr im in ist
        kein keine mit nach nicht noch nur oder sein sich sie sind so über um und uns unter vom von vor
        war waren was wenn wer wie wir wird wo zu zum zur""",
    "french": """à au aux avec c ce ces cet cette d dans de des du elle elles en est et eux il ils j je
        l la le les leur leurs lui m mais même mes moi mon n ne nos notre nous on ont ou où par pas pour
        qu que qui s sa se ses son sont sur t ta te tes toi ton tu un une vos votre vous y""",
    "spanish": """a al ante como con cual cuando de del desde donde e el ella ellas ellos en entre era es
        esa ese eso esta este esto fue ha hay la las le les lo los más me mi muy no nos o para pero por
        porque que quien se ser si sin sobre son su sus también te tu un una uno unos y ya yo""",
    "italian": """a ad agli ai al alla alle allo anche c che chi ci come con cui d da dagli dai dal dalla
        dalle de dei del dell della delle dello di e ed era è fu gli ha hanno i il in io l la le lei li
        lo loro lui ma mi ne nei nel nell nella nelle noi non o per perché più quale quello questa
        questo se si sono su sua sul sulla suo ti tra tu un una uno vi voi""",
    "portuguese": """a à ao aos aquela aquele as às até com como da das de dela dele depois do dos e é
        ela elas ele eles em entre era essa esse esta este eu foi há isso isto já lhe mais mas me mesmo
        meu na não nas nem no nos nós o os ou para pela pelo por qual quando que quem se sem ser seu só
        sua são também te tem um uma você""",
    "dutch": """aan al als bij dan dat de der deze die dit door een en er geen had heb heeft hem het hij
        hoe ik in is je kan maar me met mijn na naar niet nog nu of om onder ons ook op over te tot u
        uit van voor want was wat we wel wie wij worden wordt ze zich zij zijn zo""",
    "swedish": """alla att av blev bli blir de dem den denna deras dess det detta dig din du där efter
        eller en ett från för ha hade han hans har hon hur här i icke inte jag kan man med men mig min
        mot ni nu när och om oss på samma sedan sig sin sitt ska som så till under upp ut var vara
        varit vi vid vilka vilken är över""",
    "norwegian": """alle at av ble bli blir da de deg dem den denne der dere deres det dette din du eg
        eller en er et etter for fra før ha hadde han hans har hun hva hvor i ikke inn jeg kan man med
        meg men min mot nå når og også om opp oss over på seg selv sin sitt skal som så til under ut
        var ved vi vil være å""",
    "danish": """af alle at blev blive bliver da de dem den denne der deres det dette dig din du efter
        eller en er et for fra ham han hans har havde hun hvad hvis hvor i ikke ind jeg kan man med men
        mig min mod ned noget nogle nu når og også om op os over på selv sig sin skal som så til ud
        under var ved vi vil være""",
    "finnish": """ei eivät että en et ette he hän ja joka jos jotka kanssa kuin kun me mikä mitä mukaan
        mutta myös ne niin nyt näin ole olen oli olla olivat on ovat se sekä siitä sitä tai tämä te
        vaan vai vain voi ja""",
    "russian": """а без бы был была были было быть в вам вас во вот все вы для до его ее если есть еще же
        за здесь и из или им их к как ко когда кто ли мне мы на над не нет ни но о об он она они оно от
        по под при с со так также такой там то того тоже только ты у уже чего чем что чтобы эта эти это
        этот я""",
}

STOP_WORDS = {language: frozenset(words.split()) for language, words in _LISTS.items()}

NEGATIONS = frozenset(
    word
    for line in (
        "no not nicht kein keine ne pas non não nem",
        "niet geen inte icke ikke ei eivät не нет ни",
    )
    for word in line.split()
)
"""Negations turn a sentence round, so a tokenizer that means to lose nothing keeps them."""
