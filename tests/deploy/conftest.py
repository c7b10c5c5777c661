"""An image is tested where there is one: MEDIAPLANE_TEST_IMAGE names it."""

import os

collect_ignore = [] if os.environ.get("MEDIAPLANE_TEST_IMAGE") else ["test_image.py"]
