
PRAGMA page_size=4096;

PRAGMA writable_schema=ON;

BEGIN TRANSACTION;

DROP TABLE IF EXISTS agent;
CREATE TABLE agent (
    name text primary key,
    settings text not null  -- JSON
) strict, without rowid;
INSERT INTO agent VALUES('ada','{"preset":"direct","memory_class":"chat"}');

DROP TABLE IF EXISTS approval;
CREATE TABLE "approval" (
    seq integer primary key autoincrement,
    function text not null,
    digest text not null,
    content text not null,  -- JSON: [module, version] of the function's module and of all that it imports
    grants text not null,  -- JSON
    by text not null,
    seal text not null,
    at real not null,
    unique (function, digest)
) strict;
INSERT INTO approval VALUES(1,'note_of','13f3dda2cb8be9fbcb745eb6ba71e924404b451adccb836a2b2c175e224b6510','[["old", "45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1"]]','{"read": ["notes/"]}','root','1f4f08aefc2a90141ab61ceb0a876c6d1dca3a3402e55b770e00d42db8120979',1795977330.0212624);
INSERT INTO approval VALUES(2,'counted','a36f64db7baf6e7a2178ee33f24c1badb395bcfb5a7ebe2ecfc65d49ddfbd1d9','[["old", "45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1"]]','{"stateful": true}','root','b1551f3173276f6e5dbff012a15667327276b1aab40a7d62e5910e23a4749daa',1795977333.1521635);

DROP TABLE IF EXISTS block;
CREATE TABLE block (
    seq integer primary key,
    id text not null unique,
    label text not null,
    value text not null,  -- JSON: a text or a list of texts
    chars integer not null,  -- its limit
    description text not null,
    read_only integer not null,
    shared integer not null,
    version integer not null,
    edited real not null
) strict;
INSERT INTO block VALUES(1,'01a22897-05ac-711b-98e1-a8ae90415520','persona','"I am Knapper, an assistant that makes its own functions. I am friendly and to the point: I say what I did and what came of it, and what I do not know I look up or compute."',2000,'Who you are: your name, manner and what you have learned to do.',0,0,1,1795977315.7667446);
INSERT INTO block VALUES(2,'01a22897-05ac-7a26-a071-a1a438437b3d','human','"Name: Ada Lovelace"',2000,'What you know of the user: name, people, likes, plans.',0,0,2,1795977318.5808184);
CREATE INDEX block_shared on block (label) where shared;

DROP TABLE IF EXISTS block_access;
CREATE TABLE block_access (
    block text not null primary key references block (id) on delete cascade,
    readers text not null,  -- JSON
    writers text not null  -- JSON
, owner text not null default '') strict, without rowid;
INSERT INTO block_access VALUES('01a22897-05ac-711b-98e1-a8ae90415520','["*"]','["*"]','ada');
INSERT INTO block_access VALUES('01a22897-05ac-7a26-a071-a1a438437b3d','["*"]','["*"]','ada');

DROP TABLE IF EXISTS block_change;
CREATE TABLE block_change (
    block text not null references block (id) on delete cascade,
    version integer not null,
    value text not null,
    what text not null,
    by text not null,
    agent text not null,
    turn text not null,
    at real not null,
    primary key (block, version)
) strict;
INSERT INTO block_change VALUES('01a22897-05ac-711b-98e1-a8ae90415520',1,'"I am Knapper, an assistant that makes its own functions. I am friendly and to the point: I say what I did and what came of it, and what I do not know I look up or compute."','created: added "I am Knapper, an assistant that makes its own functions. I am friendly and to the point: I say what I did and what came of it, and what I do not know I look up…"','class','ada','',1795977315.7667446);
INSERT INTO block_change VALUES('01a22897-05ac-7a26-a071-a1a438437b3d',1,'""','created','class','ada','',1795977315.7677689);
INSERT INTO block_change VALUES('01a22897-05ac-7a26-a071-a1a438437b3d',2,'"Name: Ada Lovelace"','core_memory_append: added "Name: Ada Lovelace"','agent','ada','01a22897-082d-7998-a1bb-c3815a47d041',1795977318.5808184);

DROP TABLE IF EXISTS call;
CREATE TABLE call (
    function text not null,
    n integer not null,
    version text not null,
    turn text not null,
    outcome text not null,  -- as published; `documented` is an exception that the docstring names
    error text not null,
    message text not null,
    seconds real not null,
    memory integer,  -- bytes; null where it was not measured
    at real not null, cpu real,
    primary key (function, n)
) strict, without rowid;
INSERT INTO call VALUES('count_vowels',1,'2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2','01a22897-082d-7998-a1bb-c3815a47d041','returned','','',0.01185211700067157,17780736,1795977318.3226306,0.0007217710000000004);
INSERT INTO call VALUES('count_vowels',2,'2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2','','returned','','',0.010367,17784832,1795977321.7509086,0.0008636430000000003);
INSERT INTO call VALUES('counted',1,'654e70aa597f2a7c6f330b4696e19df02a8816739bd97942125307eb360dedba','','returned','','',0.021596,17780736,1795977341.4278095,0.0018318900000000003);
INSERT INTO call VALUES('doubled',1,'1c73f21f0124be665c27cd389f8291a636cf2741d7c092cc33238420028d73f9','','returned','','',0.007998,17780736,1795977327.2041035,0.0006457980000000004);
INSERT INTO call VALUES('note_of',1,'eb80735fb9599ecebc42d1f4b02f286b86cc5ed52cb6f556cac40b657fca149f','','returned','','',0.024417,17784832,1795977337.2609463,0.001788726);

DROP TABLE IF EXISTS call_kind;
CREATE TABLE call_kind (
    function text not null,
    version text not null,
    outcome text not null,
    error text not null,
    calls integer not null,
    last real not null,
    primary key (function, version, outcome, error)
) strict, without rowid;

DROP TABLE IF EXISTS call_total;
CREATE TABLE call_total (
    function text not null,
    version text not null,
    calls integer not null,
    returned integer not null,
    failed integer not null,
    failing integer not null,
    holding integer not null,
    first real not null,
    last real not null,
    seconds real not null, worst integer not null default 0, since real, worked real, longest real not null default 0, memory integer, cpu real,
    primary key (function, version)
) strict, without rowid;
INSERT INTO call_total VALUES('count_vowels','2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2',2,2,0,0,2,1795977318.3226306,1795977321.7509086,0.02221911700067157,0,1795977318.3226306,1795977321.7509086,0.01185211700067157,17784832,0.0015854140000000007);
INSERT INTO call_total VALUES('counted','654e70aa597f2a7c6f330b4696e19df02a8816739bd97942125307eb360dedba',1,1,0,0,1,1795977341.4278095,1795977341.4278095,0.021596,0,1795977341.4278095,1795977341.4278095,0.021596,17780736,0.0018318900000000003);
INSERT INTO call_total VALUES('doubled','1c73f21f0124be665c27cd389f8291a636cf2741d7c092cc33238420028d73f9',1,1,0,0,1,1795977327.2041035,1795977327.2041035,0.007998,0,1795977327.2041035,1795977327.2041035,0.007998,17780736,0.0006457980000000004);
INSERT INTO call_total VALUES('note_of','eb80735fb9599ecebc42d1f4b02f286b86cc5ed52cb6f556cac40b657fca149f',1,1,0,0,1,1795977337.2609463,1795977337.2609463,0.024417,0,1795977337.2609463,1795977337.2609463,0.024417,17784832,0.001788726);
CREATE INDEX call_failing on call_total (worst) where worst > 0;

DROP TABLE IF EXISTS change;
CREATE TABLE change (
    seq integer primary key autoincrement,
    module text not null,
    version text references text (hash),
    by text not null,
    turn text not null,
    model text not null,
    reason text not null,
    at real not null
, kept_out text not null default '') strict;
INSERT INTO change VALUES(1,'old','45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1','human','','','saved',1795977315.613628,'');
INSERT INTO change VALUES(2,'words','2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2','agent','01a22897-082d-7998-a1bb-c3815a47d041','scripted','asked',1795977318.2194567,'');
CREATE INDEX change_kept_out on change (module) where kept_out <> '';
CREATE INDEX change_module on change (module, seq);
CREATE INDEX change_version on change (version, seq);

DROP TABLE IF EXISTS document;
CREATE TABLE document (
    seq integer primary key autoincrement,
    agent text not null,
    hash text not null,
    name text not null,
    kind text not null,
    at real not null,
    done integer not null,
    total integer not null,
    complete integer not null,
    unique (agent, hash)
) strict;

DROP TABLE IF EXISTS entry;
CREATE TABLE "entry" (
    seq integer primary key,
    turn integer generated always as (seq >> 20) virtual,
    n integer generated always as (seq & 1048575) virtual,
    kind text not null,
    payload text not null,
    attempt integer not null,
    at real not null
) strict;
INSERT INTO entry VALUES(1048576,'user','{"text":"How many vowels has queueing?"}',1,1795977316.4100647);
INSERT INTO entry VALUES(1048577,'usage','{"model":"scripted","prompt_tokens":1776,"completion_tokens":106,"cached_tokens":0,"estimated":false}',1,1795977317.9680822);
INSERT INTO entry VALUES(1048578,'request','{"program":"0.1.0","model":"scripted","parameters":{"name":"scripted","mode":"auto","programs":"auto","api":"auto","stream":true,"timeout_s":600,"retries":4,"key_variable":"OPENAI_API_KEY"},"instructions":"709e8ea1e932eae81bb2dfefd0a052a060b4245d8a62671091ff52b4e9439d60","sections":["709e8ea1e932eae81bb2dfefd0a052a060b4245d8a62671091ff52b4e9439d60","9279f0deea5bfb2a9dbcf50c8f6f7465dae922eb2e93b081f139005671c2dd63","4c54f4a9e2bd53bf4bed0f12b31ac658f6cbee0c9526a8bff65e75604413fd67"],"functions":["create_function","run_program","call_function","list_functions","introspect_function","edit_function","delete_function","reload_functions","core_memory_append","core_memory_replace","conversation_search"],"versions":{"counted":"45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1","doubled":"45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1","note_of":"45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1"}}',1,1795977317.9680822);
INSERT INTO entry VALUES(1048579,'assistant','{"text":"","thought":"","calls":[{"id":"call_1_0","name":"create_function","arguments":"{\"function_name\": \"count_vowels\", \"function_code_with_docstring\": \"def count_vowels(text: str) -> int:\\n    \\\"\\\"\\\"Count the vowels in a text.\\n\\n    Args:\\n        text: What to look at.\\n\\n    Examples:\\n        >>> count_vowels(\\\"queueing\\\")\\n        5\\n        >>> count_vowels(\\\"xyz\\\")\\n        0\\n    \\\"\\\"\\\"\\n    return sum(letter in \\\"aeiou\\\" for letter in text.lower())\\n\", \"module_name\": \"words\", \"reason\": \"asked\"}"}]}',1,1795977317.9680822);
INSERT INTO entry VALUES(1048580,'call','{"id":"call_1_0","name":"create_function","version":null}',1,1795977317.9974787);
INSERT INTO entry VALUES(1048581,'usage','{"model":"scripted","prompt_tokens":777,"completion_tokens":19,"cached_tokens":0,"estimated":false}',1,1795977318.2192965);
INSERT INTO entry VALUES(1048582,'did','{"made":{"created":["count_vowels"]}}',1,1795977318.2192965);
INSERT INTO entry VALUES(1048583,'result','{"call_id":"call_1_0","name":"create_function","text":"`count_vowels` joined in functions/words.py and can be called now. It is: count_vowels(text) -> int\nNote: functions/words.py:1 weak-examples: all examples of `count_vowels` but those of one result would also pass if its body were only `return 0` — add an example with another result, which is not `0`\nNext: call `count_vowels` with the user''s data.","outcome":"returned","seconds":0.214803,"detail":{"name":"count_vowels","module":"words","admitted":true,"standing":"trial","version":"2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2","fixes":[],"problems":[{"code":"weak-examples","message":"all examples of `count_vowels` but those of one result would also pass if its body were only `return 0`","fix":"add an example with another result, which is not `0`","path":"functions/words.py","line":1,"column":0,"severity":"warns","evidence":[{"fact":"return 0"}]}],"stages":[{"stage":"read","passed":true,"seconds":0.0002481079991412116,"note":""},{"stage":"fix","passed":true,"seconds":0.006184843001392437,"note":""},{"stage":"conform","passed":true,"seconds":0.0006058190010662656,"note":""},{"stage":"substance","passed":true,"seconds":0.0001775130003807135,"note":""},{"stage":"duplicate","passed":true,"seconds":0.012527660001069307,"note":"no function computes the same"},{"stage":"capability","passed":true,"seconds":0.00026962000083585735,"note":""},{"stage":"import","passed":true,"seconds":0.031180232999759028,"note":""},{"stage":"examples","passed":true,"seconds":0.029397827000138932,"note":"2 of 2 examples agree"},{"stage":"fitted","passed":true,"seconds":0.0006586180006706854,"note":"its examples hang on no constant of its code"},{"stage":"mutation","passed":true,"seconds":0.0358207429999311,"note":"1 of 1 wrong body noticed"},{"stage":"robust","passed":true,"seconds":0.03933159500047623,"note":"14 calls tried","beside":true},{"stage":"neighbours","passed":true,"seconds":3.0074999813223258e-05,"note":""},{"stage":"reader","passed":true,"seconds":0.053851031998419785,"note":"has to reach nothing"}],"source":"def count_vowels(text: str) -> int:\n    \"\"\"Count the vowels in a text.\n\n    Args:\n        text: What to look at.\n\n    Examples:\n        >>> count_vowels(\"queueing\")\n        5\n        >>> count_vowels(\"xyz\")\n        0\n    \"\"\"\n    return sum(letter in \"aeiou\" for letter in text.lower())\n","agreed":2,"confirmed":[],"can_be_confirmed":false,"needs":{},"reach":[],"survivors":[],"disagreements":[],"reader":{"model":"scripted","described":"bbc4183cd65253f4","reach":"nothing","calls":[],"asked":[],"thought":"So it says.","is_small":false,"prompt_tokens":777,"completion_tokens":19,"seconds":0.05231023400119739}}}',1,1795977318.2192965);
INSERT INTO entry VALUES(1048584,'usage','{"model":"scripted","prompt_tokens":2038,"completion_tokens":6,"cached_tokens":0,"estimated":false}',1,1795977318.294534);
INSERT INTO entry VALUES(1048585,'assistant','{"text":"","thought":"","calls":[{"id":"call_2_0","name":"count_vowels","arguments":"{\"text\": \"queueing\"}"}]}',1,1795977318.294534);
INSERT INTO entry VALUES(1048586,'call','{"id":"call_2_0","name":"count_vowels","version":"2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2"}',1,1795977318.294534);
INSERT INTO entry VALUES(1048587,'result','{"call_id":"call_2_0","name":"count_vowels","text":"5","outcome":"returned","seconds":0.021844,"detail":{"outcome":"returned","value":5,"output":"","seconds":0.004739,"memory":17780736,"cpu_s":0.0007217710000000004,"error":null}}',1,1795977318.3225806);
INSERT INTO entry VALUES(1048588,'usage','{"model":"scripted","prompt_tokens":2097,"completion_tokens":100,"cached_tokens":0,"estimated":false}',1,1795977318.3745177);
INSERT INTO entry VALUES(1048589,'assistant','{"text":"","thought":"","calls":[{"id":"call_3_0","name":"create_function","arguments":"{\"function_name\": \"flawed\", \"function_code_with_docstring\": \"def flawed(text: str) -> int:\\n    \\\"\\\"\\\"Count the vowels in a text.\\n\\n    Args:\\n        text: What to look at.\\n\\n    Examples:\\n        >>> flawed(\\\"queueing\\\")\\n        5\\n        >>> flawed(\\\"xyz\\\")\\n        7\\n    \\\"\\\"\\\"\\n    return sum(letter in \\\"aeiou\\\" for letter in text.lower())\\n\", \"module_name\": \"words\", \"reason\": \"asked\"}"}]}',1,1795977318.3745177);
INSERT INTO entry VALUES(1048590,'call','{"id":"call_3_0","name":"create_function","version":null}',1,1795977318.3866906);
INSERT INTO entry VALUES(1048591,'result','{"call_id":"call_3_0","name":"create_function","text":"`flawed` was not made. 2 things are in the way:\n- line 1: `flawed` computes the same as a function that is there: `count_vowels(text: string) -> int` (functions/words.py:1): Count the vowels in a text. Fix: call `count_vowels` instead, or say in `reason` how yours differs from `count_vowels`. [copy]\n- line 10: for `flawed(\"xyz\")` you wrote `7`, it returned `0`. Fix: if `0` is right, write it there; if not, fix the body. [example-disagrees]\nNext: fix all of it and call create_function again with the whole code.","outcome":"refused","seconds":0.102987,"detail":{"name":"flawed","module":"words","admitted":false,"standing":"","version":"9f8882e441efab89905baf9a72f590673592ae518bb17bf4b07095eec59b983b","fixes":[],"problems":[{"code":"copy","message":"`flawed` computes the same as a function that is there: `count_vowels(text: string) -> int` (functions/words.py:1): Count the vowels in a text.","fix":"call `count_vowels` instead, or say in `reason` how yours differs from `count_vowels`","path":"","line":1,"column":0,"severity":"refuses","evidence":[{"fact":"`count_vowels(text: string) -> int` (functions/words.py:1): Count the vowels in a text."}]},{"code":"example-disagrees","message":"for `flawed(\"xyz\")` you wrote `7`, it returned `0`","fix":"if `0` is right, write it there; if not, fix the body","path":"","line":10,"column":0,"severity":"refuses","evidence":[{"call":"flawed(\"xyz\")","returned":"0","expected":"7"}]}],"stages":[{"stage":"read","passed":true,"seconds":0.00020517499979177956,"note":""},{"stage":"fix","passed":true,"seconds":0.00045470499935618136,"note":""},{"stage":"conform","passed":true,"seconds":0.0003919419996236684,"note":""},{"stage":"substance","passed":true,"seconds":0.0010177610001846915,"note":""},{"stage":"duplicate","passed":false,"seconds":0.0007036440001684241,"note":""},{"stage":"capability","passed":true,"seconds":0.0001752299995132489,"note":""},{"stage":"import","passed":true,"seconds":0.0221485340007348,"note":""},{"stage":"examples","passed":false,"seconds":0.028180088000226533,"note":"1 of 2 examples agree"},{"stage":"fitted","passed":true,"seconds":0.00032087700128613506,"note":"its examples hang on no constant of its code"},{"stage":"mutation","passed":false,"seconds":0.00011281700062681921,"note":"not run: its examples do not agree yet"},{"stage":"robust","passed":true,"seconds":0.03812909000043874,"note":"14 calls tried","beside":true},{"stage":"neighbours","passed":true,"seconds":2.5236999135813676e-05,"note":""},{"stage":"reader","passed":false,"seconds":6.652899901382625e-05,"note":"not run: it is refused already"}],"source":"def flawed(text: str) -> int:\n    \"\"\"Count the vowels in a text.\n\n    Args:\n        text: What to look at.\n\n    Examples:\n        >>> flawed(\"queueing\")\n        5\n        >>> flawed(\"xyz\")\n        7\n    \"\"\"\n    return sum(letter in \"aeiou\" for letter in text.lower())\n","agreed":1,"confirmed":[],"can_be_confirmed":false,"needs":{},"reach":[],"survivors":[],"disagreements":[{"call":"flawed(\"xyz\")","expected":"7","returned":"0","line":10}]}}',1,1795977318.4927273);
INSERT INTO entry VALUES(1048592,'usage','{"model":"scripted","prompt_tokens":2394,"completion_tokens":13,"cached_tokens":0,"estimated":false}',1,1795977318.5654378);
INSERT INTO entry VALUES(1048593,'assistant','{"text":"","thought":"","calls":[{"id":"call_4_0","name":"core_memory_append","arguments":"{\"name\": \"human\", \"content\": \"Name: Ada Lovelace\"}"}]}',1,1795977318.5654378);
INSERT INTO entry VALUES(1048594,'call','{"id":"call_4_0","name":"core_memory_append","version":null}',1,1795977318.5745564);
INSERT INTO entry VALUES(1048595,'did','{"made":{"remembered":["human"],"lines":{"human":1}}}',1,1795977318.5807612);
INSERT INTO entry VALUES(1048596,'result','{"call_id":"call_4_0","name":"core_memory_append","text":"Added as line 1.\n`human` reads now (18 of 2,000 characters):\nName: Ada Lovelace","outcome":"returned","seconds":0.001079,"detail":{}}',1,1795977318.5807612);
INSERT INTO entry VALUES(1048597,'usage','{"model":"scripted","prompt_tokens":2483,"completion_tokens":9,"cached_tokens":0,"estimated":false}',1,1795977318.6261718);
INSERT INTO entry VALUES(1048598,'assistant','{"text":"","thought":"","calls":[{"id":"call_5_0","name":"archival_memory_insert","arguments":"{\"content\": \"Herons fish at dusk.\"}"}]}',1,1795977318.6261718);
INSERT INTO entry VALUES(1048599,'call','{"id":"call_5_0","name":"archival_memory_insert","version":null}',1,1795977318.6292522);
INSERT INTO entry VALUES(1048600,'did','{"made":{"remembered":["archival memory"]}}',1,1795977318.635086);
INSERT INTO entry VALUES(1048601,'result','{"call_id":"call_5_0","name":"archival_memory_insert","text":"Kept as 01a22897-10e9-7b7f; archival memory now holds 1 passage.","outcome":"returned","seconds":0.001564,"detail":{}}',1,1795977318.635086);
INSERT INTO entry VALUES(1048602,'usage','{"model":"scripted","prompt_tokens":2564,"completion_tokens":5,"cached_tokens":0,"estimated":false}',1,1795977318.7155528);
INSERT INTO entry VALUES(1048603,'assistant','{"text":"It has 5 vowels.","thought":"","calls":[]}',1,1795977318.7155528);
INSERT INTO entry VALUES(1048604,'notice','{"text":"Nothing was made or changed: `flawed` was rejected. Fix it with edit_function or create_function, or tell the user that it was not done."}',1,1795977318.7187521);
INSERT INTO entry VALUES(1048605,'usage','{"model":"scripted","prompt_tokens":2622,"completion_tokens":2,"cached_tokens":0,"estimated":false}',1,1795977318.7532935);
INSERT INTO entry VALUES(1048606,'assistant','{"text":"Yes.","thought":"","calls":[]}',1,1795977318.7532935);
INSERT INTO entry VALUES(1048607,'receipt','{"made":{"created":["count_vowels"],"remembered":["human","archival memory"],"lines":{"human":1},"called":{"count_vowels":1}}}',1,1795977318.7552052);
INSERT INTO entry VALUES(2097152,'user','{"text":"Do you remember heron?"}',1,1795977345.3893168);
INSERT INTO entry VALUES(2097153,'usage','{"model":"scripted","prompt_tokens":2668,"completion_tokens":2,"cached_tokens":0,"estimated":false}',1,1795977345.92466);
INSERT INTO entry VALUES(2097154,'request','{"program":"0.1.0","model":"scripted","parameters":{"name":"scripted","mode":"auto","programs":"auto","api":"auto","stream":true,"timeout_s":600,"retries":4,"key_variable":"OPENAI_API_KEY"},"instructions":"75a305a8ccda57302edbfa6e956f9671ce08abb18544e0173c5f7ba86ac74982","sections":["75a305a8ccda57302edbfa6e956f9671ce08abb18544e0173c5f7ba86ac74982","765b41286ba10e65e47141b43a5813b7a9ce95dacde99ab03a7b99ff8e91a33c","b1aac5f82d53c3bfa4d91c10677e99376666665942e8292d4d217ffe14945423"],"functions":["create_function","run_program","call_function","list_functions","introspect_function","edit_function","delete_function","reload_functions","core_memory_append","core_memory_replace","conversation_search"],"versions":{"count_vowels":"2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2","counted":"45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1","doubled":"45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1","note_of":"45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1"}}',1,1795977345.92466);
INSERT INTO entry VALUES(2097155,'assistant','{"text":"Yes.","thought":"","calls":[]}',1,1795977345.92466);
INSERT INTO entry VALUES(2097156,'receipt','{"made":{}}',1,1795977345.9496448);
CREATE INDEX entry_summary on entry (seq) where kind = 'summary';

DROP TABLE IF EXISTS event;
CREATE TABLE event (
    seq integer primary key autoincrement,
    id text not null unique,
    agent text not null,
    key text,
    kind text not null,
    payload text not null,
    due real not null,
    timed integer not null,  -- 0: due at once, even if the clock goes back
    at real not null,
    turn integer references turn (seq),  -- who took it; null while it waits
    unique (agent, key)
) strict;
INSERT INTO event VALUES(1,'01a22897-082a-7eb1-9392-f706c98486af','ada',NULL,'message','{"text":"How many vowels has queueing?"}',1795977316.3949316,0,1795977316.3949316,1);
INSERT INTO event VALUES(2,'01a22897-7912-7d9b-96d8-83bdede32985','ada',NULL,'message','{"text":"Do you remember heron?"}',1795977345.2980227,0,1795977345.2980227,2);
CREATE INDEX event_turn on event (turn) where turn is not null;
CREATE INDEX event_waiting on event (agent, due, seq) where turn is null;

DROP TABLE IF EXISTS exposure;
CREATE TABLE exposure (
    n integer primary key autoincrement,
    turn text not null,
    function text not null,
    version text not null,
    masked integer not null,
    model text not null
, kind text not null default '', is_right integer, draw text not null default '') strict;
INSERT INTO exposure VALUES(1,'01a22897-7929-783a-8d4d-948752210693','count_vowels','2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2',0,'scripted','note_of',NULL,'01a22897-7929-783a-8d4d-948752210693');

DROP TABLE IF EXISTS holding;
CREATE TABLE holding (
    agent text not null,
    block text not null references block (id) on delete cascade,
    position integer not null,
    attached integer not null,
    primary key (agent, block)
) strict, without rowid;
INSERT INTO holding VALUES('ada','01a22897-05ac-711b-98e1-a8ae90415520',0,1);
INSERT INTO holding VALUES('ada','01a22897-05ac-7a26-a071-a1a438437b3d',1,1);
CREATE INDEX holding_block on holding (block);

DROP TABLE IF EXISTS intent;
CREATE TABLE intent (
    seq integer primary key,
    path text not null,
    version text not null,
    text text,
    expected text,
    at real not null, tended text not null default '', seal text not null default '',
    unique (path, version)
) strict;

DROP TABLE IF EXISTS lane;
CREATE TABLE lane (
    id integer primary key autoincrement,
    agent text not null,
    shelf text not null,
    space text not null,
    rows integer not null default 0,
    done integer not null default 0, upto integer not null default 0,
    unique (agent, shelf, space)
) strict;
INSERT INTO lane VALUES(1,'ada','archival','',1,0,0);

DROP TABLE IF EXISTS manifest;
CREATE TABLE manifest (
    module text primary key,
    version text not null references text (hash)
) strict, without rowid;
INSERT INTO manifest VALUES('old','45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1');
INSERT INTO manifest VALUES('words','2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2');

DROP TABLE IF EXISTS message;
CREATE TABLE message (
    seq integer primary key autoincrement,
    id text not null unique,
    thread text not null references thread (id) on delete cascade,
    kind text not null,
    sender text not null,
    recipient text not null,
    text text not null,
    turn text not null,  -- the sender's
    hops integer not null,
    owes text not null,  -- the ask that the sender still has to answer, or that it hands on
    state text not null,
    answer text not null default '',
    at real not null,
    due real,
    ended real
) strict;
CREATE INDEX message_open on message (sender) where state = 'open';
CREATE INDEX message_thread on message (thread, seq);
CREATE INDEX message_turn on message (turn) where kind = 'ask';

DROP TABLE IF EXISTS origin;
CREATE TABLE origin (
    id text not null
) strict;
INSERT INTO origin VALUES('knapper:66753e03178722386e2ca6521582973aced46af3a80d795f');

DROP TABLE IF EXISTS passage;
CREATE TABLE passage (
    seq integer primary key autoincrement,
    id text not null,
    agent text not null,
    text text not null,
    words text not null,
    at real not null,
    tags text not null,  -- JSON
    source text not null,
    place text not null,
    document text not null,
    n integer not null,
    unique (agent, id)
) strict;
INSERT INTO passage VALUES(1,'01a22897-10e9-7b7f-873b-5c7676adde22','ada','Herons fish at dusk.','29 november 2026 herons fish dusk',1795977318.6334088,'[]','','','',0);
CREATE INDEX passage_agent on passage (agent, seq);
CREATE INDEX passage_document on passage (agent, document, n) where document <> '';

DELETE FROM sqlite_schema WHERE name='passage_words' AND type='table';
INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql) VALUES('table','passage_words','passage_words',0,'CREATE VIRTUAL TABLE passage_words using fts5(
    words, content = '''', contentless_delete = 1, detail = none, tokenize = ''ascii''
)');

DROP TABLE IF EXISTS passage_words_config;
CREATE TABLE 'passage_words_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO passage_words_config VALUES('version',4);

DROP TABLE IF EXISTS passage_words_data;
CREATE TABLE 'passage_words_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO passage_words_data VALUES(1,X'0106');
INSERT INTO passage_words_data VALUES(10,X'00000000FF00000101010100010101010101000001');
INSERT INTO passage_words_data VALUES(137438953473,X'000000300730317832303236010401390103046475736B010304666973680103056865726F6E0103066E6F76656D6201040904070708');

DROP TABLE IF EXISTS passage_words_docsize;
CREATE TABLE 'passage_words_docsize'(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER);
INSERT INTO passage_words_docsize VALUES(1,X'06',1);

DROP TABLE IF EXISTS passage_words_idx;
CREATE TABLE 'passage_words_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
INSERT INTO passage_words_idx VALUES(1,X'',2);

DROP TABLE IF EXISTS paused;
CREATE TABLE paused (
    agent text primary key,
    why text not null,
    at real not null
) strict, without rowid;

DROP TABLE IF EXISTS pending;
CREATE TABLE pending (
    function text primary key,
    candidate text not null,
    at real not null
, seal text not null default '') strict;
INSERT INTO pending VALUES('flawed','{"code":"def flawed(text: str) -> int:\n    \"\"\"Count the vowels in a text.\n\n    Args:\n        text: What to look at.\n\n    Examples:\n        >>> flawed(\"queueing\")\n        5\n        >>> flawed(\"xyz\")\n        7\n    \"\"\"\n    return sum(letter in \"aeiou\" for letter in text.lower())\n","module":"words","reason":"asked","over":"","examples":[],"verdict":{"name":"flawed","module":"words","admitted":false,"standing":"","version":"9f8882e441efab89905baf9a72f590673592ae518bb17bf4b07095eec59b983b","fixes":[],"problems":[{"code":"copy","message":"`flawed` computes the same as a function that is there: `count_vowels(text: string) -> int` (functions/words.py:1): Count the vowels in a text.","fix":"call `count_vowels` instead, or say in `reason` how yours differs from `count_vowels`","path":"","line":1,"column":0,"severity":"refuses","evidence":[{"fact":"`count_vowels(text: string) -> int` (functions/words.py:1): Count the vowels in a text."}]},{"code":"example-disagrees","message":"for `flawed(\"xyz\")` you wrote `7`, it returned `0`","fix":"if `0` is right, write it there; if not, fix the body","path":"","line":10,"column":0,"severity":"refuses","evidence":[{"call":"flawed(\"xyz\")","returned":"0","expected":"7"}]}],"stages":[{"stage":"read","passed":true,"seconds":0.00020517499979177956,"note":""},{"stage":"fix","passed":true,"seconds":0.00045470499935618136,"note":""},{"stage":"conform","passed":true,"seconds":0.0003919419996236684,"note":""},{"stage":"substance","passed":true,"seconds":0.0010177610001846915,"note":""},{"stage":"duplicate","passed":false,"seconds":0.0007036440001684241,"note":""},{"stage":"capability","passed":true,"seconds":0.0001752299995132489,"note":""},{"stage":"import","passed":true,"seconds":0.0221485340007348,"note":""},{"stage":"examples","passed":false,"seconds":0.028180088000226533,"note":"1 of 2 examples agree"},{"stage":"fitted","passed":true,"seconds":0.00032087700128613506,"note":"its examples hang on no constant of its code"},{"stage":"mutation","passed":false,"seconds":0.00011281700062681921,"note":"not run: its examples do not agree yet"},{"stage":"robust","passed":true,"seconds":0.03812909000043874,"note":"14 calls tried","beside":true},{"stage":"neighbours","passed":true,"seconds":2.5236999135813676e-05,"note":""},{"stage":"reader","passed":false,"seconds":6.652899901382625e-05,"note":"not run: it is refused already"}],"source":"def flawed(text: str) -> int:\n    \"\"\"Count the vowels in a text.\n\n    Args:\n        text: What to look at.\n\n    Examples:\n        >>> flawed(\"queueing\")\n        5\n        >>> flawed(\"xyz\")\n        7\n    \"\"\"\n    return sum(letter in \"aeiou\" for letter in text.lower())\n","agreed":1,"confirmed":[],"can_be_confirmed":false,"needs":{},"reach":[],"survivors":[],"disagreements":[{"call":"flawed(\"xyz\")","expected":"7","returned":"0","line":10}]}}',1795977318.4928799,'91de1ea8bac2b6397531b47faa37b2d8324b21bd991b1456843dca296a6e252e');

DROP TABLE IF EXISTS pin;
CREATE TABLE pin (
    agent text not null,
    function text not null,
    primary key (agent, function)
) strict, without rowid;

DROP TABLE IF EXISTS question;
CREATE TABLE question (
    seq integer primary key autoincrement,
    id text not null unique,
    agent text not null,
    turn text not null,
    question text not null,  -- JSON
    asked_at real not null,
    seal text not null,
    decision text,  -- JSON; none as long as it is pending
    answered_at real,
    answer_seal text
) strict;
CREATE INDEX question_pending on question (turn) where decision is null;

DROP TABLE IF EXISTS reading;
CREATE TABLE reading (
    path text primary key,
    mtime_ns integer not null,
    size integer not null,
    inode text not null,  -- may need all of 64 bits, and SQLite's integers have a sign
    version text not null,
    reading text not null
, seal text not null default '') strict;
INSERT INTO reading VALUES('functions/old.py',0,0,'0','45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1','{"format": "7/3.11", "version": "45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1", "functions": [{"name": "doubled", "line": 4, "end_line": 16, "description": "Double a number.", "parameters": {"type": "object", "properties": {"number": {"type": "integer", "description": "The number."}}, "required": ["number"], "additionalProperties": false}, "is_async": false, "takes_self": false, "returns": "int", "unresolved": [], "body_hash": "1c73f21f0124be665c27cd389f8291a636cf2741d7c092cc33238420028d73f9", "examples": [{"setup": [], "call": "doubled(2)", "expected": "4\n", "line": 11, "raises": "", "options": []}, {"setup": [], "call": "doubled(-3)", "expected": "-6\n", "line": 13, "raises": "", "options": []}], "rest": "", "extra": ""}, {"name": "counted", "line": 19, "end_line": 22, "description": "Count the calls so far.", "parameters": {"type": "object", "properties": {}, "required": [], "additionalProperties": false}, "is_async": false, "takes_self": true, "returns": "int", "unresolved": [], "body_hash": "654e70aa597f2a7c6f330b4696e19df02a8816739bd97942125307eb360dedba", "examples": [], "rest": "", "extra": ""}, {"name": "note_of", "line": 25, "end_line": 32, "description": "Read a note.", "parameters": {"type": "object", "properties": {"name": {"type": "string", "description": "The name of its file."}}, "required": ["name"], "additionalProperties": false}, "is_async": false, "takes_self": false, "returns": "str", "unresolved": [], "body_hash": "eb80735fb9599ecebc42d1f4b02f286b86cc5ed52cb6f556cac40b657fca149f", "examples": [], "rest": "", "extra": ""}], "problems": [], "imports": [], "parsed": true, "leans": []}','74ab9f2e1b22bdf6041a2a4ee92f1b5e2e7b4ac88461f6815dee862c3b95bf1e');
INSERT INTO reading VALUES('functions/words.py',0,0,'0','2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2','{"format": "7/3.11", "version": "2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2", "functions": [{"name": "count_vowels", "line": 1, "end_line": 13, "description": "Count the vowels in a text.", "parameters": {"type": "object", "properties": {"text": {"type": "string", "description": "What to look at."}}, "required": ["text"], "additionalProperties": false}, "is_async": false, "takes_self": false, "returns": "int", "unresolved": [], "body_hash": "2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2", "examples": [{"setup": [], "call": "count_vowels(\"queueing\")", "expected": "5\n", "line": 8, "raises": "", "options": []}, {"setup": [], "call": "count_vowels(\"xyz\")", "expected": "0\n", "line": 10, "raises": "", "options": []}], "rest": "", "extra": ""}], "problems": [], "imports": [], "parsed": true, "leans": []}','b822b19711abb04153e6479922ea51c37eed19043a7bd851c79e8bdfa7c53dfa');

DROP TABLE IF EXISTS recorded;
CREATE TABLE recorded (
    n integer primary key autoincrement,
    function text not null,
    outcome text not null,
    turn text not null,
    at real not null,
    data text not null
, seal text not null default '') strict;
INSERT INTO recorded VALUES(1,'count_vowels','returned','01a22897-082d-7998-a1bb-c3815a47d041',1795977318.322864,'{"module":"words","modules":{"words":"2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2"},"arguments":{"text":"queueing"},"seed":201009014445792,"zone":"","heard":[],"lacking":[],"outcome":{"outcome":"returned","value":5,"digest":"ef2d127de37b942baad06145e54b0c619a1f22327b2ebbcfbec78f5564afe39d","error":null,"output":""}}','8aac6e1e8e9a9a81e03cb9546cdc5708b4fe7cc46094e12702f8a38691f591c7');
INSERT INTO recorded VALUES(2,'count_vowels','returned','',1795977321.7512414,'{"module":"words","modules":{"words":"2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2"},"arguments":{"text":"aha"},"seed":221317950373735,"zone":"","heard":[],"lacking":[],"outcome":{"outcome":"returned","value":2,"digest":"d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35","error":null,"output":""}}','c1e405d548e4b8a5f75929b5237f5cf8f09d9cf6caa9c3bb540e36f1a0de736a');
INSERT INTO recorded VALUES(3,'doubled','returned','',1795977327.2044046,'{"module":"old","modules":{"old":"45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1"},"arguments":{"number":4},"seed":70407870870515,"zone":"","heard":[],"lacking":[],"outcome":{"outcome":"returned","value":8,"digest":"2c624232cdd221771294dfbb310aca000a0df6ac8b66b696d90ef06fdefb64a3","error":null,"output":""}}','c38290abea00e3192347491b4928e8645f0f917133ed455703502449fd370ec0');
INSERT INTO recorded VALUES(4,'note_of','returned','',1795977337.2614057,'{"module":"old","modules":{"old":"45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1"},"arguments":{"name":"today"},"seed":23536092484802,"zone":"","heard":[],"lacking":["a file (open, functions/old.py:31)"],"outcome":{"outcome":"returned","value":"Rain.","digest":"a9d3b659ed4962e63d87d710facae96a0238903579c406b2f018b768848736b9","error":null,"output":""}}','a7b0c1dd4b306f4abe834d256282b5a02b7f25d72d808c2a8ad6dbe0b81d0140');
INSERT INTO recorded VALUES(5,'counted','returned','',1795977341.428115,'{"module":"old","modules":{"old":"45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1"},"arguments":{},"seed":231832117505156,"zone":"","heard":[{"name":"state","arguments":{},"value":[0,{}]},{"name":"state","arguments":{"value":{"calls":1},"version":0},"value":null}],"lacking":[],"outcome":{"outcome":"returned","value":1,"digest":"6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b","error":null,"output":""}}','3ba10fb23f82db41dad46987e5840b9a3d973e3bf74560cde3c7973f4d50cb53');
CREATE INDEX recorded_function on recorded (function, n);

DROP TABLE IF EXISTS "release";
CREATE TABLE release (
    seq integer primary key,
    function text not null,
    version text not null,
    at real not null
) strict;
CREATE INDEX release_function on release (function, seq);

DROP TABLE IF EXISTS said;
CREATE TABLE said (
    seq integer primary key,
    agent text not null,
    n integer not null,
    text text not null,
    words text not null,
    at real not null,
    speaker text not null,
    session integer not null,
    length integer not null,
    asks integer not null,
    timed integer not null,
    turn text not null
) strict;
CREATE INDEX said_agent on said (agent, n);
CREATE INDEX said_at on said (agent, at, seq);

DELETE FROM sqlite_schema WHERE name='said_words' AND type='table';
INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql) VALUES('table','said_words','said_words',0,'CREATE VIRTUAL TABLE said_words using fts5(
    words, content = '''', contentless_delete = 1, detail = none, tokenize = ''ascii''
)');

DROP TABLE IF EXISTS said_words_config;
CREATE TABLE 'said_words_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO said_words_config VALUES('version',4);

DROP TABLE IF EXISTS said_words_data;
CREATE TABLE 'said_words_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO said_words_data VALUES(1,X'');
INSERT INTO said_words_data VALUES(10,X'00000000FF000001000000');

DROP TABLE IF EXISTS said_words_docsize;
CREATE TABLE 'said_words_docsize'(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER);

DROP TABLE IF EXISTS said_words_idx;
CREATE TABLE 'said_words_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;

DROP TABLE IF EXISTS section;
CREATE TABLE section (
    agent text not null,
    name text not null,
    position integer not null,
    text text not null,
    chars integer not null,
    edited real not null,
    primary key (agent, name)
) strict;

DROP TABLE IF EXISTS seen;
CREATE TABLE seen (
    agent text not null,
    function text not null,
    version text not null,
    shape text not null,  -- JSON
    primary key (agent, function)
) strict, without rowid;

DROP TABLE IF EXISTS spending;
CREATE TABLE spending (
    thread text not null references thread (id) on delete cascade,
    agent text not null,
    hops integer not null default 0,  -- the longest way of a message, all others are sums
    messages integer not null default 0,
    steps integer not null default 0,
    tokens integer not null default 0,
    cost real not null default 0,
    seconds real not null default 0,
    helpers integer not null default 0,
    depth integer not null default 0,
    primary key (thread, agent)
) strict, without rowid;

DROP TABLE IF EXISTS state;
CREATE TABLE state (
    n integer primary key autoincrement,
    function text not null,
    turn text not null,
    value text not null,  -- JSON
    at real not null
) strict;
INSERT INTO state VALUES(1,'counted','begun','{}',1795977341.4284542);
INSERT INTO state VALUES(2,'counted','','{"calls":1}',1795977341.4284766);
CREATE INDEX state_function on state (function, n);

DROP TABLE IF EXISTS tag;
CREATE TABLE tag (
    agent text not null,
    tag text not null,
    passage integer not null references passage (seq) on delete cascade,
    primary key (agent, tag, passage)
) strict, without rowid;
CREATE INDEX tag_passage on tag (passage);

DROP TABLE IF EXISTS tended;
CREATE TABLE tended (
    n integer primary key autoincrement,
    run text not null,
    function text not null,
    kind text not null,
    before text not null,
    after text not null,
    note text not null,
    at real not null,
    undone integer not null default 0
) strict;

DROP TABLE IF EXISTS text;
CREATE TABLE text (
    hash text primary key,
    text text not null
) strict;
INSERT INTO text VALUES('45c3e3c15ddd3b00fc992de71db3a35fb3ac42acb8624acec6cff9784b5eaad1','"""Functions that a person wrote."""


def doubled(number: int) -> int:
    """Double a number.

    Args:
        number: The number.

    Examples:
        >>> doubled(2)
        4
        >>> doubled(-3)
        -6
    """
    return 2 * number


def counted(self) -> int:
    """Count the calls so far."""
    self.state["calls"] = self.state.get("calls", 0) + 1
    return self.state["calls"]


def note_of(name: str) -> str:
    """Read a note.

    Args:
        name: The name of its file.
    """
    with open(f"notes/{name}") as file:
        return file.read()
');
INSERT INTO text VALUES('709e8ea1e932eae81bb2dfefd0a052a060b4245d8a62671091ff52b4e9439d60','You are an assistant that makes its own functions. Answer in plain text; compute with functions instead of guessing.

If no function does what the user needs, do it with run_program and keep that by create_function(from_program=true), or make one in the same turn and call it. A function is plain Python 3.11 with type hints and a docstring:

def count_vowels(text: str) -> int:
    """Count the vowels in a text.

    >>> count_vowels("queueing")
    5
    >>> count_vowels("rhythm")
    0
    """
    return sum(letter in "aeiou" for letter in text.lower())

- General: the user''s case comes in as arguments. Two or more examples, different results.
- It runs in a sandbox with the standard library and pydantic. With `self` first it has self.call("name", argument=value), self.progress(done, total, note), self.scratch (a folder), self.state (JSON it keeps, {} at first).
- Of the world it has what the user grants. Write it as if it had that, host or path spelled out, in a module of its own; the user is asked before it joins: self.fetch(url) with .text() and .json(), open() (the user''s path is an argument; no examples then), self.secret("NAME"), other packages.
- What you learn of the user goes into memory; its answer shows the nearest lines: replace what became untrue.
- A refusal names problems and fixes: fix all and send it again, or edit_function; if only an expected value was wrong, confirm_function.
- Never say a function exists or changed unless its answer said so.

Call these in a program or by call_function (no type: a str; in []: what it reaches):
counted() -> int: Count the calls so far [keeps a value between its calls]
doubled(number: int) -> int: Double a number
note_of(name) -> str: Read a note [reads notes/]
And of the program (introspect_function shows how): replace_function, confirm_function, add_example, function_history, rollback_function, test_function, debugger, clear_debugger, trace_function, add_function, remove_function, read_on, conversation_search_date, archival_memory_insert, archival_memory_search, archival_memory_delete, core_memory_remove, core_memory_rewrite');
INSERT INTO text VALUES('9279f0deea5bfb2a9dbcf50c8f6f7465dae922eb2e93b081f139005671c2dd63','<persona characters="171/2000" description="Who you are: your name, manner and what you have learned to do.">
I am Knapper, an assistant that makes its own functions. I am friendly and to the point: I say what I did and what came of it, and what I do not know I look up or compute.
</persona>
<human characters="0/2000" description="What you know of the user: name, people, likes, plans.">

</human>');
INSERT INTO text VALUES('4c54f4a9e2bd53bf4bed0f12b31ac658f6cbee0c9526a8bff65e75604413fd67','Memory: 1 messages in recall, 0 passages in archival memory; blocks last edited: never.');
INSERT INTO text VALUES('2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2','def count_vowels(text: str) -> int:
    """Count the vowels in a text.

    Args:
        text: What to look at.

    Examples:
        >>> count_vowels("queueing")
        5
        >>> count_vowels("xyz")
        0
    """
    return sum(letter in "aeiou" for letter in text.lower())
');
INSERT INTO text VALUES('75a305a8ccda57302edbfa6e956f9671ce08abb18544e0173c5f7ba86ac74982','You are an assistant that makes its own functions. Answer in plain text; compute with functions instead of guessing.

If no function does what the user needs, do it with run_program and keep that by create_function(from_program=true), or make one in the same turn and call it. A function is plain Python 3.11 with type hints and a docstring:

def count_vowels(text: str) -> int:
    """Count the vowels in a text.

    >>> count_vowels("queueing")
    5
    >>> count_vowels("rhythm")
    0
    """
    return sum(letter in "aeiou" for letter in text.lower())

- General: the user''s case comes in as arguments. Two or more examples, different results.
- It runs in a sandbox with the standard library and pydantic. With `self` first it has self.call("name", argument=value), self.progress(done, total, note), self.scratch (a folder), self.state (JSON it keeps, {} at first).
- Of the world it has what the user grants. Write it as if it had that, host or path spelled out, in a module of its own; the user is asked before it joins: self.fetch(url) with .text() and .json(), open() (the user''s path is an argument; no examples then), self.secret("NAME"), other packages.
- What you learn of the user goes into memory; its answer shows the nearest lines: replace what became untrue.
- A refusal names problems and fixes: fix all and send it again, or edit_function; if only an expected value was wrong, confirm_function.
- Never say a function exists or changed unless its answer said so.

Call these in a program or by call_function (no type: a str; in []: what it reaches):
counted() -> int: Count the calls so far [keeps a value between its calls]
doubled(number: int) -> int: Double a number
note_of(name) -> str: Read a note [reads notes/]
count_vowels(text) -> int: Count the vowels in a text
And of the program (introspect_function shows how): replace_function, confirm_function, add_example, function_history, rollback_function, test_function, debugger, clear_debugger, trace_function, add_function, remove_function, read_on, conversation_search_date, archival_memory_insert, archival_memory_search, archival_memory_delete, core_memory_remove, core_memory_rewrite');
INSERT INTO text VALUES('765b41286ba10e65e47141b43a5813b7a9ce95dacde99ab03a7b99ff8e91a33c','<persona characters="171/2000" description="Who you are: your name, manner and what you have learned to do.">
I am Knapper, an assistant that makes its own functions. I am friendly and to the point: I say what I did and what came of it, and what I do not know I look up or compute.
</persona>
<human characters="18/2000" description="What you know of the user: name, people, likes, plans.">
Name: Ada Lovelace
</human>');
INSERT INTO text VALUES('b1aac5f82d53c3bfa4d91c10677e99376666665942e8292d4d217ffe14945423','Memory: 4 messages in recall, 1 passages in archival memory; blocks last edited: 2026-11-29 18:35.');

DROP TABLE IF EXISTS thread;
CREATE TABLE thread (
    id text primary key,  -- the turn that began it
    agent text not null,
    limits text not null,  -- amounts by name, as JSON
    state text not null default 'open',  -- or stopped, or stuck: then a person decides
    why text not null default '',
    started real not null
) strict, without rowid;

DROP TABLE IF EXISTS token;
CREATE TABLE token (
    id text primary key,
    name text not null unique,
    digest text not null,
    scopes text not null,  -- JSON: a list
    agents text not null,  -- JSON: a list; empty for all
    expires real,
    added_at real not null,
    seal text not null
) strict, without rowid;

DROP TABLE IF EXISTS turn;
CREATE TABLE turn (
    seq integer primary key autoincrement,
    id text not null unique,
    agent text not null,
    event integer not null references event (seq),
    state text not null default 'open',
    attempt integer not null,
    n integer not null default 0,
    owner text not null,
    cancelled integer not null default 0,
    hidden integer not null default 0,
    started real not null,
    ended real
, streamed text not null default '') strict;
INSERT INTO turn VALUES(1,'01a22897-082d-7998-a1bb-c3815a47d041','ada',1,'done',1,32,'process 19240',0,0,1795977316.397341,1795977318.7575712,'');
INSERT INTO turn VALUES(2,'01a22897-7929-783a-8d4d-948752210693','ada',2,'done',1,5,'process 21004',0,0,1795977345.3215566,1795977345.9575143,'');
CREATE INDEX turn_agent on turn (agent, seq);
CREATE INDEX turn_event on turn (event);
CREATE UNIQUE INDEX turn_open on turn (agent) where state = 'open';

DROP TABLE IF EXISTS vector;
CREATE TABLE vector (
    lane integer not null references lane (id) on delete cascade,
    seq integer not null,
    vector blob not null,  -- little-endian float32
    primary key (lane, seq)
) strict;

DROP TABLE IF EXISTS verdict;
CREATE TABLE verdict (
    version text not null,
    function text not null,
    verdict text not null,
    at real not null, seal text not null default '',
    primary key (version, function)
) strict;
INSERT INTO verdict VALUES('1c73f21f0124be665c27cd389f8291a636cf2741d7c092cc33238420028d73f9','doubled','{"module":"old","admitted":true,"standings":{"doubled":"trial","counted":"draft","note_of":"draft"},"problems":[],"stages":[{"stage":"read","passed":true,"seconds":0.005319927999153151,"note":""},{"stage":"text","passed":true,"seconds":0.002807959001074778,"note":""},{"stage":"import","passed":true,"seconds":0.34400198600087606,"note":""},{"stage":"examples","passed":true,"seconds":0.04578302400113898,"note":""}],"by":"human","name":"doubled","line":4,"standing":"trial","confirmed":[]}',1795977315.6139917,'4f3a85730ea53b7ef04459885284ebff32c64ed265d5e6359d86a9c1a4ff114b');
INSERT INTO verdict VALUES('654e70aa597f2a7c6f330b4696e19df02a8816739bd97942125307eb360dedba','counted','{"module":"old","admitted":true,"standings":{"doubled":"trial","counted":"draft","note_of":"draft"},"problems":[{"code":"unproven","message":"`counted` has no example that could show what it does, so it is added as a draft","fix":null,"path":"functions/old.py","line":19,"column":0,"severity":"warns","evidence":[{"fact":"line 19: def counted(self) -> int:"}]}],"stages":[{"stage":"read","passed":true,"seconds":0.005319927999153151,"note":""},{"stage":"text","passed":true,"seconds":0.002807959001074778,"note":""},{"stage":"import","passed":true,"seconds":0.34400198600087606,"note":""},{"stage":"examples","passed":true,"seconds":0.04578302400113898,"note":""}],"by":"human","name":"counted","line":19,"standing":"draft","confirmed":[]}',1795977315.6140628,'61d8967ae66023c80fd2dc7b3ae013baca46ff093efc63c943349914725bb385');
INSERT INTO verdict VALUES('eb80735fb9599ecebc42d1f4b02f286b86cc5ed52cb6f556cac40b657fca149f','note_of','{"module":"old","admitted":true,"standings":{"doubled":"trial","counted":"draft","note_of":"draft"},"problems":[{"code":"needs-files","message":"`open()` needs the grant `files` (notes/), which this function does not have","fix":"a human is asked before it is called, or grants it now: knapper functions grant NAME","path":"functions/old.py","line":31,"column":10,"severity":"warns","evidence":[{"fact":"line 31: with open(f\"notes/{name}\") as file:"}]},{"code":"unproven","message":"`note_of` has no example that could show what it does, so it is added as a draft","fix":null,"path":"functions/old.py","line":25,"column":0,"severity":"warns","evidence":[{"fact":"line 25: def note_of(name: str) -> str:"}]}],"stages":[{"stage":"read","passed":true,"seconds":0.005319927999153151,"note":""},{"stage":"text","passed":true,"seconds":0.002807959001074778,"note":""},{"stage":"import","passed":true,"seconds":0.34400198600087606,"note":""},{"stage":"examples","passed":true,"seconds":0.04578302400113898,"note":""}],"by":"human","name":"note_of","line":25,"standing":"draft","confirmed":[]}',1795977315.6141024,'59790186befe7ecb1552d85239ff69a1bbeb733176d0193c6af78652d41ae519');
INSERT INTO verdict VALUES('2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2','count_vowels','{"name":"count_vowels","module":"words","admitted":true,"standing":"trial","version":"2ec5494e0adf1c46a5d81b858171aa6de905ddef1f19fe60a00f1164fcc3b7f2","fixes":[],"problems":[{"code":"weak-examples","message":"all examples of `count_vowels` but those of one result would also pass if its body were only `return 0`","fix":"add an example with another result, which is not `0`","path":"functions/words.py","line":1,"column":0,"severity":"warns","evidence":[{"fact":"return 0"}]}],"stages":[{"stage":"read","passed":true,"seconds":0.0002481079991412116,"note":""},{"stage":"fix","passed":true,"seconds":0.006184843001392437,"note":""},{"stage":"conform","passed":true,"seconds":0.0006058190010662656,"note":""},{"stage":"substance","passed":true,"seconds":0.0001775130003807135,"note":""},{"stage":"duplicate","passed":true,"seconds":0.012527660001069307,"note":"no function computes the same"},{"stage":"capability","passed":true,"seconds":0.00026962000083585735,"note":""},{"stage":"import","passed":true,"seconds":0.031180232999759028,"note":""},{"stage":"examples","passed":true,"seconds":0.029397827000138932,"note":"2 of 2 examples agree"},{"stage":"fitted","passed":true,"seconds":0.0006586180006706854,"note":"its examples hang on no constant of its code"},{"stage":"mutation","passed":true,"seconds":0.0358207429999311,"note":"1 of 1 wrong body noticed"},{"stage":"robust","passed":true,"seconds":0.03933159500047623,"note":"14 calls tried","beside":true},{"stage":"neighbours","passed":true,"seconds":3.0074999813223258e-05,"note":""},{"stage":"reader","passed":true,"seconds":0.053851031998419785,"note":"has to reach nothing"}],"source":"def count_vowels(text: str) -> int:\n    \"\"\"Count the vowels in a text.\n\n    Args:\n        text: What to look at.\n\n    Examples:\n        >>> count_vowels(\"queueing\")\n        5\n        >>> count_vowels(\"xyz\")\n        0\n    \"\"\"\n    return sum(letter in \"aeiou\" for letter in text.lower())\n","agreed":2,"confirmed":[],"can_be_confirmed":false,"needs":{},"reach":[],"survivors":[],"disagreements":[],"reader":{"model":"scripted","described":"bbc4183cd65253f4","reach":"nothing","calls":[],"asked":[],"thought":"So it says.","is_small":false,"prompt_tokens":777,"completion_tokens":19,"seconds":0.05231023400119739},"by":"agent","line":1,"thumb":"good"}',1795977324.1115866,'8506c1489b9b3a3452e1329c49facef9a1bf351051d6260b36ffb7317224ef0b');

DELETE FROM main.sqlite_sequence WHERE name='approval';
INSERT INTO main.sqlite_sequence VALUES ('approval', 2);
DELETE FROM main.sqlite_sequence WHERE name='change';
INSERT INTO main.sqlite_sequence VALUES ('change', 2);
DELETE FROM main.sqlite_sequence WHERE name='event';
INSERT INTO main.sqlite_sequence VALUES ('event', 2);
DELETE FROM main.sqlite_sequence WHERE name='exposure';
INSERT INTO main.sqlite_sequence VALUES ('exposure', 1);
DELETE FROM main.sqlite_sequence WHERE name='lane';
INSERT INTO main.sqlite_sequence VALUES ('lane', 1);
DELETE FROM main.sqlite_sequence WHERE name='passage';
INSERT INTO main.sqlite_sequence VALUES ('passage', 1);
DELETE FROM main.sqlite_sequence WHERE name='recorded';
INSERT INTO main.sqlite_sequence VALUES ('recorded', 5);
DELETE FROM main.sqlite_sequence WHERE name='state';
INSERT INTO main.sqlite_sequence VALUES ('state', 2);
DELETE FROM main.sqlite_sequence WHERE name='turn';
INSERT INTO main.sqlite_sequence VALUES ('turn', 2);

pragma user_version=23;
pragma application_id=1416589164;

COMMIT TRANSACTION;

PRAGMA writable_schema=OFF;

BEGIN;
CREATE TABLE no_such_table(x,y,z);
ROLLBACK;
PRAGMA user_version = 23;
PRAGMA application_id = 1416589164;
