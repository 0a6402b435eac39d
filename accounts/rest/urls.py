from django.urls import path, register_converter
from django.urls.converters import StringConverter

from accounts.announcements import api as announcements
from accounts.notices import api as notices
from accounts.people import api as people
from accounts.rest import views, views_audit, views_device, views_tenants
from accounts.service_accounts import api as service_accounts


class UsernameConverter(StringConverter):
    """The characters that a user name can have."""

    regex = r"[\w.@+-]{1,150}"


register_converter(UsernameConverter, "username")

urlpatterns = [
    path("me/", views.MeView.as_view(), name="me"),
    path("me/sessions/", views.SessionsView.as_view(), name="my-sessions"),
    path("notices/", notices.NoticesView.as_view(), name="notices"),
    path("notices/read/", notices.AllReadView.as_view(), name="notices-read"),
    path("notices/<uuid:id>/read/", notices.ReadView.as_view(), name="notice-read"),
    path("notices/preferences/", notices.NoticePreferencesView.as_view(), name="notice-preferences"),
    path("people/", people.PeopleView.as_view(), name="people"),
    path("people/<username:username>/", people.PersonView.as_view(), name="person"),
    path("people/<username:username>/password/", people.PasswordView.as_view(), name="person-password"),
    path(
        "people/<username:username>/reset-second-factor/",
        people.ResetSecondFactorView.as_view(),
        name="person-reset-second-factor",
    ),
    path("ssh-keys/", views.SSHKeysView.as_view(), name="ssh-keys"),
    path("ssh-keys/<uuid:id>/", views.SSHKeyView.as_view(), name="ssh-key"),
    path("tokens/", views.TokensView.as_view(), name="tokens"),
    path("tokens/<uuid:id>/", views.TokenView.as_view(), name="token"),
    path("device/code/", views_device.CodeView.as_view(), name="device-code"),
    path("device/token/", views_device.TokenView.as_view(), name="device-token"),
    path("ws-tickets/", views.TicketsView.as_view(), name="ws-tickets"),
    path("tenants/", views_tenants.TenantsView.as_view(), name="tenants"),
    path("tenants/<slug:slug>/members/", views_tenants.MembersView.as_view(), name="members"),
    path(
        "tenants/<slug:slug>/members/<username:username>/", views_tenants.MemberView.as_view(), name="member"
    ),
    path("service-accounts/", service_accounts.ServiceAccountsView.as_view(), name="service-accounts"),
    path(
        "service-accounts/<uuid:id>/", service_accounts.ServiceAccountView.as_view(), name="service-account"
    ),
    path(
        "service-accounts/<uuid:id>/adopt/",
        service_accounts.AdoptView.as_view(),
        name="service-account-adopt",
    ),
    path(
        "service-accounts/<uuid:id>/tokens/",
        service_accounts.ServiceTokensView.as_view(),
        name="service-account-tokens",
    ),
    path(
        "service-accounts/<uuid:id>/tokens/<uuid:token_id>/",
        service_accounts.ServiceTokenView.as_view(),
        name="service-account-token",
    ),
    path("announcements/", announcements.AnnouncementsView.as_view(), name="announcements"),
    path("announcements/<uuid:id>/", announcements.AnnouncementView.as_view(), name="announcement"),
    path("audit/", views_audit.AuditView.as_view(), name="audit"),
]
