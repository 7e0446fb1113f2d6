-- Every block has a row with its owner, the agent that made it: who owns a block does not depend on its history, which
-- can be forgotten.
insert into block_access (block, readers, writers, owner)
    select id, '["*"]', '["*"]', coalesce((select agent from block_change where block = id order by version limit 1), '')
    from block where true
    on conflict (block) do update set owner = excluded.owner where block_access.owner = '';
