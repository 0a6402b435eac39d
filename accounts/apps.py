from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = _("People and access")

    def ready(self) -> None:
        from django.core.checks import Tags, register

        from accounts.notices import words
        from accounts.notices.checks import mail_is_set_up
        from accounts.receivers import forget_answers
        from accounts.service_accounts import notices
        from accounts.signals import access_changed

        access_changed.connect(forget_answers, dispatch_uid="accounts.forget_answers")
        access_changed.connect(notices.on_access_changed, dispatch_uid="accounts.service_accounts")
        words.register(notices.SUBJECT, notices.describe)
        register(mail_is_set_up, Tags.compatibility, deploy=True)
