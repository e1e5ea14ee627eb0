"""Letta's published server over a PostgreSQL of its own, which it finds empty.

The package leaves out the migrations that make its tables: they are made here of the package's own models, with the sequence that
its models expect of the database.
"""

import asyncio
import os
import sys

from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

import letta.orm  # noqa: F401
from letta.main import app
from letta.orm.base import Base


async def make_tables():
    engine = create_async_engine(os.environ["LETTA_PG_URI"].replace("postgresql://", "postgresql+asyncpg://"))
    async with engine.begin() as connection:
        if (await connection.execute(text("SELECT to_regclass('messages')"))).scalar() is None:
            await connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
            await connection.run_sync(Base.metadata.create_all)
            await connection.execute(text("CREATE SEQUENCE message_seq_id"))
            await connection.execute(
                text("ALTER TABLE messages ALTER sequence_id SET DEFAULT nextval('message_seq_id')")
            )
    await engine.dispose()


asyncio.run(make_tables())
app(["server", "--host", "127.0.0.1", "--port", sys.argv[1]])
