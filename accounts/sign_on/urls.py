"""Addresses of signing in, without allauth's own: we use its parts, not its pages."""

from django.urls import path

from accounts.directory import views as views_directory
from accounts.sign_on import views, views_password, views_second_factor

urlpatterns = [
    path("sign-in/", views.sign_in, name="sign-in"),
    path("sign-in/oidc/", views.begin, name="sign-on"),
    path("sign-in/oidc/callback/", views.callback, name="sign-on-callback"),
    path("sign-in/password/", views_password.choose_at_sign_in, name="sign-in-password"),
    path("sign-in/code/", views_second_factor.code, name="sign-in-code"),
    path("sign-in/set-up/", views_second_factor.set_up_at_sign_in, name="sign-in-set-up"),
    path("sign-out/", views.sign_out, name="sign-out"),
    path("profile/connect/", views.connect, name="sign-on-connect"),
    path("profile/connect-directory/", views_directory.connect, name="directory-connect"),
    path("profile/password/", views_password.change, name="password"),
    path("profile/second-factor/", views_second_factor.manage, name="second-factor"),
    path(
        "profile/second-factor/recovery-codes/",
        views_second_factor.renew_recovery_codes,
        name="second-factor-codes",
    ),
    path("profile/second-factor/remove/", views_second_factor.remove, name="second-factor-remove"),
]
