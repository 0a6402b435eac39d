from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quotas", "0006_claim_lengths")]

    operations = [
        migrations.AddField(model_name="claim", name="must_end_at", field=models.DateTimeField(null=True)),
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(
                condition=models.Q(("reclaim_at__isnull", False), ("state", "admitted")),
                fields=["reclaim_at"],
                name="claim_asked_back",
            ),
        ),
    ]
