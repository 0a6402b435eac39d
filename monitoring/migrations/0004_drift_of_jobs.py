import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_initial"), ("monitoring", "0003_no_kept_volumes")]

    operations = [
        migrations.AddField(
            model_name="finding",
            name="job",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="jobs.job"
            ),
        ),
    ]
