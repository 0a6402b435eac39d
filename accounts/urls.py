from django.urls import include, path

from accounts import views
from accounts.sign_on import views_device
from accounts.trail import views_audit

urlpatterns = [
    path("notices/", include("accounts.notices.urls")),
    path("", include("accounts.sign_on.urls")),
    path("profile/", views.profile, name="profile"),
    path("profile/ssh-keys/", views.add_ssh_key, name="ssh-key-add"),
    path("profile/ssh-keys/<uuid:id>/remove/", views.remove_ssh_key, name="ssh-key-remove"),
    path("profile/tokens/", views.create_token, name="token-create"),
    path("profile/tokens/<uuid:id>/revoke/", views.revoke_token, name="token-revoke"),
    path("profile/preferences/", views.set_preferences, name="preferences"),
    path("profile/language/", views.set_preferences, name="language"),
    path("profile/sign-out-everywhere/", views.sign_out_everywhere, name="sign-out-everywhere"),
    path("device/", views_device.device, name="device"),
    path("audit/", views_audit.audit_trail, name="audit"),
]
