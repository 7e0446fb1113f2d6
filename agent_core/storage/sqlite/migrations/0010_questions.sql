-- What the user is asked during a turn, answered by the id of the question: by the prompt of the process that asks, or
-- by any other of this user. `seal` and `answer_seal` tell both from a stranger's row.
create table question (
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

create index question_pending on question (turn) where decision is null;
