-- The highest token seen per lock, the lock each object belongs to, and who moved objects between locks.
-- The free space per page keeps updates of a mark on its page, without touching the index.
CREATE TABLE holdfast_fence.marks (
    lock  text COLLATE "C" PRIMARY KEY,
    token bigint NOT NULL CHECK (token BETWEEN 1 AND 9007199254740991)
) WITH (fillfactor = 50);

CREATE TABLE holdfast_fence.bindings (
    object text COLLATE "C" PRIMARY KEY,
    lock   text COLLATE "C" NOT NULL
);

CREATE TABLE holdfast_fence.rebindings (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    object    text COLLATE "C" NOT NULL,
    from_lock text COLLATE "C" NOT NULL,
    to_lock   text COLLATE "C" NOT NULL,
    actor     text NOT NULL,
    reason    text NOT NULL,
    at        timestamptz NOT NULL
);

CREATE INDEX rebindings_object ON holdfast_fence.rebindings (object, id);

CREATE FUNCTION holdfast_fence.check_name(what text, name text) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF name IS NULL OR octet_length(name) NOT BETWEEN 1 AND 2047 OR name ~ '[\u0001-\u001F\u007F-\u009F]' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'HF400',
            MESSAGE = format('the %s is not valid: it must be 1 to 2047 bytes without control characters', what);
    END IF;
END
$$;

-- The fence. Call it in the transaction of your write, before you read what the write depends on. It returns the mark,
-- or raises and so leaves the transaction aborted: HF412 stale token (DETAIL: the highest token seen), HF409 the object
-- is bound to another lock (DETAIL: that lock), HF400 invalid argument.
--
-- It never reads the mark and then writes it: at READ COMMITTED two transactions could both read the old mark. The
-- upsert first takes the row's lock, waits for whoever holds it, and compares with the row as committed. The lock stays
-- until the end of the transaction, also for an equal token, so no higher token can be committed between check and write.
CREATE FUNCTION holdfast_fence.check_token(in_lock text, in_token bigint, in_object text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    highest bigint;
    bound   text;
BEGIN
    PERFORM holdfast_fence.check_name('lock name', in_lock);
    IF in_token IS NULL OR in_token NOT BETWEEN 1 AND 9007199254740991 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'HF400',
            MESSAGE = format('the token is not valid: %s is not between 1 and 9007199254740991', in_token);
    END IF;

    -- A mark that a crash takes back lets the old holder in again.
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;

    INSERT INTO holdfast_fence.marks AS mark (lock, token) VALUES (in_lock, in_token)
        ON CONFLICT (lock) DO UPDATE SET token = excluded.token WHERE mark.token <= excluded.token
        RETURNING mark.token INTO highest;
    IF NOT FOUND THEN
        SELECT mark.token INTO highest FROM holdfast_fence.marks AS mark WHERE mark.lock = in_lock;
        RAISE EXCEPTION USING
            ERRCODE = 'HF412',
            MESSAGE = format('token %s for lock "%s" is stale: a newer holder has shown token %s',
                             in_token, in_lock, highest),
            DETAIL = highest::text;
    END IF;

    IF in_object IS NOT NULL THEN
        PERFORM holdfast_fence.check_name('object name', in_object);
        INSERT INTO holdfast_fence.bindings (object, lock) VALUES (in_object, in_lock) ON CONFLICT DO NOTHING;
        -- The share lock holds a rebinding off until this transaction ends.
        SELECT binding.lock INTO bound FROM holdfast_fence.bindings AS binding
            WHERE binding.object = in_object FOR SHARE;
        IF bound <> in_lock THEN
            RAISE EXCEPTION USING
                ERRCODE = 'HF409',
                MESSAGE = format('object "%s" is bound to lock "%s" and cannot be written under lock "%s"',
                                 in_object, bound, in_lock),
                DETAIL = bound;
        END IF;
    END IF;
    RETURN highest;
END
$$;

-- Binds an object to another lock and remembers who did it and why. HF404: the object was never written.
CREATE FUNCTION holdfast_fence.rebind(in_object text, in_lock text, in_actor text, in_reason text)
RETURNS holdfast_fence.rebindings
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    bound   text;
    written holdfast_fence.rebindings;
BEGIN
    PERFORM holdfast_fence.check_name('object name', in_object);
    PERFORM holdfast_fence.check_name('lock name', in_lock);
    IF coalesce(in_actor, '') = '' OR coalesce(in_reason, '') = '' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'HF400',
            MESSAGE = 'a rebinding needs an actor and a reason';
    END IF;
    SELECT binding.lock INTO bound FROM holdfast_fence.bindings AS binding
        WHERE binding.object = in_object FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING
            ERRCODE = 'HF404',
            MESSAGE = format('object "%s" is bound to no lock: it was never written', in_object);
    END IF;
    UPDATE holdfast_fence.bindings AS binding SET lock = in_lock WHERE binding.object = in_object;
    INSERT INTO holdfast_fence.rebindings (object, from_lock, to_lock, actor, reason, at)
        VALUES (in_object, bound, in_lock, in_actor, in_reason, clock_timestamp())
        RETURNING * INTO written;
    RETURN written;
END
$$;
