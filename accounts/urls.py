from django.urls import include, path

from accounts import views
from accounts.sign_on import views as sign_on

urlpatterns = [
    path("notices/", include("accounts.notices.urls")),
    path("sign-in/", sign_on.sign_in, name="sign-in"),
    path("sign-out/", sign_on.sign_out, name="sign-out"),
    path("profile/", views.profile, name="profile"),
    path("profile/ssh-keys/", views.add_ssh_key, name="ssh-key-add"),
    path("profile/ssh-keys/<uuid:id>/remove/", views.remove_ssh_key, name="ssh-key-remove"),
    path("profile/tokens/", views.create_token, name="token-create"),
    path("profile/tokens/<uuid:id>/revoke/", views.revoke_token, name="token-revoke"),
    path("profile/language/", views.choose_language, name="language"),
]
