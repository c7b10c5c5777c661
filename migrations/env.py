"""How Alembic runs a revision: inside the transaction that mediaplane.protocol.migration opened."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    # SQLite's DDL is transactional once the driver is kept from committing by itself.
    transactional_ddl=True,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
