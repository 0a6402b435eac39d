"""Kubeconfigs that Berth keeps, and the result of the last examination by doctor."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0008_parts_of_clusters"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="doctor_at",
            field=models.DateTimeField(editable=False, null=True, verbose_name="examined at"),
        ),
        migrations.AddField(
            model_name="cluster",
            name="doctor_failures",
            field=models.JSONField(db_default={}, default=dict, editable=False),
        ),
        migrations.AddField(
            model_name="cluster",
            name="kubeconfig",
            field=models.TextField(blank=True, db_default="", default="", editable=False),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="connection",
            field=models.CharField(
                choices=[
                    ("in-cluster", "the cluster that Berth runs in"),
                    ("kubeconfig", "a kubeconfig file on the server"),
                    ("pasted", "a kubeconfig stored in Berth, encrypted"),
                ],
                default="in-cluster",
                max_length=12,
                verbose_name="connection",
            ),
        ),
    ]
