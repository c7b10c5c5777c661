"""SQLite's counterpart of the tsvector index: FTS5 over the same column, kept by triggers."""

_SEARCH_INSERT = (
    "INSERT INTO video_frames_search (rowid, search_vector) VALUES (new.id, new.search_vector);"
)
_SEARCH_DELETE = (
    "INSERT INTO video_frames_search (video_frames_search, rowid, search_vector)"
    " VALUES ('delete', old.id, old.search_vector);"
)
FRAME_SEARCH = (
    (
        "CREATE VIRTUAL TABLE video_frames_search USING fts5("
        "search_vector, content='video_frames', content_rowid='id')"
    ),
    (
        "CREATE TRIGGER video_frames_search_insert AFTER INSERT ON video_frames"
        f" BEGIN {_SEARCH_INSERT} END"
    ),
    (
        "CREATE TRIGGER video_frames_search_delete AFTER DELETE ON video_frames"
        f" BEGIN {_SEARCH_DELETE} END"
    ),
    (
        "CREATE TRIGGER video_frames_search_update AFTER UPDATE OF search_vector ON video_frames"
        f" BEGIN {_SEARCH_DELETE} {_SEARCH_INSERT} END"
    ),
)
