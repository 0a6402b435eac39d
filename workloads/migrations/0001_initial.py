"""The catalogue of images, which was in `workspaces`. Its table stays as it is."""

import uuid

from django.db import migrations, models

import accounts.text
import clusters.references


class Migration(migrations.Migration):
    initial = True

    dependencies = [("workspaces", "0008_storage_as_volumes")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Image",
                    fields=[
                        (
                            "id",
                            models.UUIDField(
                                default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                            ),
                        ),
                        ("slug", models.SlugField(max_length=40, unique=True, verbose_name="slug")),
                        (
                            "name",
                            models.CharField(
                                max_length=120, validators=[accounts.text.visible], verbose_name="name"
                            ),
                        ),
                        (
                            "description",
                            models.CharField(blank=True, max_length=240, verbose_name="description"),
                        ),
                        (
                            "reference",
                            models.CharField(
                                max_length=512,
                                validators=[clusters.references.valid_reference],
                                verbose_name="container reference",
                            ),
                        ),
                        ("offers_jupyter", models.BooleanField(default=True, verbose_name="offers Jupyter")),
                        ("offers_ssh", models.BooleanField(default=True, verbose_name="offers SSH")),
                        ("uid", models.PositiveIntegerField(default=1000, verbose_name="user id")),
                        ("gid", models.PositiveIntegerField(default=1000, verbose_name="group id")),
                        (
                            "username",
                            models.CharField(default="jovyan", max_length=32, verbose_name="user name"),
                        ),
                        (
                            "home",
                            models.CharField(default="/home/jovyan", max_length=240, verbose_name="home"),
                        ),
                        (
                            "shell",
                            models.CharField(default="/bin/bash", max_length=240, verbose_name="shell"),
                        ),
                        ("is_active", models.BooleanField(default=True, verbose_name="offered")),
                    ],
                    options={
                        "verbose_name": "image",
                        "db_table": "workspaces_image",
                        "verbose_name_plural": "images",
                        "ordering": ["slug"],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("uid__gte", 1), ("gid__gte", 1)),
                                name="image_never_runs_as_root",
                            )
                        ],
                    },
                ),
            ]
        )
    ]
