"""JupyterHub for the course: each student has an account on this machine, and instructors share the grader's server."""

INSTRUCTORS = ["emmy"]  # the accounts of those who grade
COURSE, CLASS = "/opt/attention", "/srv/class"  # as the page "Run it on a server" sets them up

c = get_config()  # noqa: F821 (JupyterHub provides it)

# Members of these groups sign in with the password of their account, and their servers run as that user.
c.PAMAuthenticator.allowed_groups = {"students", "instructors"}

# Nobody signs in as the grader: the instructors start and open that server at /user/grader/.
grader = ["access:servers!user=grader", "servers!user=grader", "read:users!user=grader"]
c.JupyterHub.load_roles = [{"name": "instructor", "scopes": grader, "users": ["grader", *INSTRUCTORS]}]

c.Spawner.environment = {
    "JUPYTER_CONFIG_PATH": "/etc/attention",  # its nbgrader_config.py names the course and the exchange
    "ATTENTION_STUDENT": lambda spawner: spawner.user.name,  # gives each student their own order of options
}


def use_the_course(spawner):
    """Start the grader's server in the folder of the course, with the grader's own environment."""
    if spawner.user.name == "grader":
        spawner.cmd = [f"{COURSE}/.venv/bin/jupyterhub-singleuser"]
        spawner.notebook_dir = COURSE
        found = f"/etc/attention:{COURSE}"  # Formgrader has to find the course's nbgrader_config.py
        spawner.environment = {**spawner.environment, "ATTENTION_CLASS": CLASS, "JUPYTER_CONFIG_PATH": found}


c.Spawner.pre_spawn_hook = use_the_course
