"""Pictures and videos, the frames that can be searched, and the workers that make them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, TSVECTOR

revision = "0009_assets"
down_revision = "0008_wal_maintenance"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Json = sa.JSON().with_variant(JSONB(), "postgresql")
SearchVector = TSVECTOR().with_variant(sa.Text(), "sqlite")

FRAME_SEARCH = (
    (
        "CREATE VIRTUAL TABLE video_frames_search USING fts5("
        "search_vector, content='video_frames', content_rowid='id')"
    ),
    (
        "CREATE TRIGGER video_frames_search_insert AFTER INSERT ON video_frames BEGIN "
        "INSERT INTO video_frames_search (rowid, search_vector) "
        "VALUES (new.id, new.search_vector); END"
    ),
    (
        "CREATE TRIGGER video_frames_search_delete AFTER DELETE ON video_frames BEGIN "
        "INSERT INTO video_frames_search (video_frames_search, rowid, search_vector) "
        "VALUES ('delete', old.id, old.search_vector); END"
    ),
    (
        "CREATE TRIGGER video_frames_search_update AFTER UPDATE OF search_vector ON video_frames"
        " BEGIN "
        "INSERT INTO video_frames_search (video_frames_search, rowid, search_vector) "
        "VALUES ('delete', old.id, old.search_vector); "
        "INSERT INTO video_frames_search (rowid, search_vector) "
        "VALUES (new.id, new.search_vector); END"
    ),
)


def upgrade() -> None:
    _create_assets()
    _create_video_frames()
    op.create_table(
        "worker_status",
        sa.Column("worker_id", sa.String(128), nullable=False),
        sa.Column("state", sa.String(32), nullable=False, server_default="idle"),
        sa.Column("command", sa.String(32), nullable=False, server_default="none"),
        sa.Column("stats", Json, nullable=False, server_default=sa.text("'{}'")),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("last_seen_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("worker_id", name="pk_worker_status"),
    )


def _create_assets() -> None:
    op.create_table(
        "assets",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("library_id", sa.String(63), nullable=False),
        sa.Column("rel_path", sa.LargeBinary, nullable=False),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("mtime", sa.Float, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("status", sa.String(32), nullable=False, server_default="pending"),
        sa.Column("tags_model_id", Id),
        sa.Column("retry_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("error_code", sa.String(64)),
        sa.Column("error_message", sa.Text),
        sa.Column("worker_id", sa.String(128)),
        sa.Column("worker_heartbeat_at", sa.BigInteger),
        sa.Column("lease_expires_at", sa.BigInteger),
        sa.Column("lease_epoch", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_assets"),
        sa.ForeignKeyConstraint(["library_id"], ["libraries.slug"], name="fk_assets_library_id"),
        sa.ForeignKeyConstraint(
            ["tags_model_id"], ["ai_models.id"], name="fk_assets_tags_model_id"
        ),
        sa.UniqueConstraint("library_id", "rel_path", name="uq_assets_library_id_rel_path"),
        sqlite_autoincrement=True,
    )
    for name, status in (
        ("ix_assets_claim_extract", "pending"),
        ("ix_assets_claim_analyze", "proxied"),
        ("ix_assets_extracting", "extracting"),
        ("ix_assets_analyzing", "analyzing"),
    ):
        is_there = sa.text(f"status = '{status}'")
        op.create_index(name, "assets", ["id"], sqlite_where=is_there, postgresql_where=is_there)


def _create_video_frames() -> None:
    op.create_table(
        "video_frames",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("asset_id", Id, nullable=False),
        sa.Column("timestamp_ms", sa.BigInteger, nullable=False),
        sa.Column("is_keyframe", sa.Boolean, nullable=False),
        sa.Column("search_vector", SearchVector),
        sa.Column("tags_model_id", Id),
        sa.PrimaryKeyConstraint("id", name="pk_video_frames"),
        sa.ForeignKeyConstraint(["asset_id"], ["assets.id"], name="fk_video_frames_asset_id"),
        sa.ForeignKeyConstraint(
            ["tags_model_id"], ["ai_models.id"], name="fk_video_frames_tags_model_id"
        ),
        sa.UniqueConstraint(
            "asset_id", "timestamp_ms", name="uq_video_frames_asset_id_timestamp_ms"
        ),
        sqlite_autoincrement=True,
    )
    if op.get_bind().dialect.name == "postgresql":
        op.create_index(
            "ix_video_frames_search", "video_frames", ["search_vector"], postgresql_using="gin"
        )
        return
    for statement in FRAME_SEARCH:
        op.execute(statement)


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.drop_table("video_frames_search")
    op.drop_table("worker_status")
    op.drop_table("video_frames")
    op.drop_table("assets")
